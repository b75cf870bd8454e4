"""Build and cache a C++ function from Python with pybind11."""

__all__: list[str] = []
