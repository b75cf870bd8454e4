/* A driver with four devices and no hardware: only what thrifty asks for, so that the real
   Python bindings can be tested anywhere. Writes init and shutdown to $STUB_NVML_CALLS.
   Power is "not supported", as on some boards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static const char *uuids[4] = {
    "GPU-aaaa1111-0000-0000-0000-000000000000", "GPU-aaaa2222-0000-0000-0000-000000000000",
    "GPU-bbbb3333-0000-0000-0000-000000000000", "GPU-cccc4444-0000-0000-0000-000000000000"};

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilization_t;

static int number(void *handle) { return (int)(long)handle - 1; }

static void tell(const char *word) {
  const char *path = getenv("STUB_NVML_CALLS");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) {
    fprintf(file, "%s\n", word);
    fclose(file);
  }
}

int nvmlInitWithFlags(unsigned int flags) { (void)flags; tell("init"); return OK; }
int nvmlInit_v2(void) { tell("init"); return OK; }
int nvmlShutdown(void) { tell("shutdown"); return OK; }
const char *nvmlErrorString(int code) { (void)code; return "stub error"; }

int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 4; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
  if (index >= 4) return INVALID_ARGUMENT;
  *handle = (void *)(long)(index + 1);
  return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
  for (long i = 0; i < 4; i++)
    if (!strcmp(uuid, uuids[i])) {
      *handle = (void *)(i + 1);
      return OK;
    }
  return NOT_FOUND;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned int size) {
  snprintf(text, size, "%s", uuids[number(handle)]);
  return OK;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned int size) {
  snprintf(text, size, "Stub %d", number(handle));
  return OK;
}

int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
  memory->total = (unsigned long long)(number(handle) + 1) << 30;
  memory->used = 4096;
  memory->free = memory->total - memory->used;
  return OK;
}

int nvmlDeviceGetUtilizationRates(void *handle, utilization_t *rates) {
  (void)handle;
  rates->gpu = 42;
  rates->memory = 7;
  return OK;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts) {
  (void)handle;
  (void)milliwatts;
  return NOT_SUPPORTED;
}
