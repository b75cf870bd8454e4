# Attach to a script that `thrifty run` started, then get out of the way.
#
# Any interpreter that inherits the environment may meet this file, whatever its version, so
# its syntax is plain and it does nothing unless THRIFTY_ATTACH is set. It takes its folder off
# sys.path, attaches, and gives way to the sitecustomize that would have been found without it.
import os
import sys


def _take_our_folder_off(folder):
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)


def _attach(folder):
    where = os.environ.get("THRIFTY_ATTACH")
    if not where or sys.version_info < (3, 11):
        return
    root = os.path.dirname(os.path.dirname(folder))
    names = ("thrifty", "thrifty.observe", "thrifty.adapters")
    before = set(sys.modules)
    kept = dict((name, sys.modules.get(name)) for name in names)
    module = type(sys)
    try:
        # Stand-ins for the packages: their own __init__ would import what only the launcher
        # needs, and a script may have a module called thrifty of its own.
        for name in names:
            package = sys.modules[name] = module(name)
            package.__path__ = [os.path.join(root, *name.split(".")[1:])]
        import thrifty.adapters._attach as attach

        attach.attach(where)
    except Exception as error:
        try:
            with open(os.path.join(where.rpartition("|")[0], "attach.failed"), "a") as stream:
                stream.write("%s: %s\n" % (type(error).__name__, error))
        except OSError:
            pass
    finally:
        # Ours, and what ours imported: a script may have a resource.py beside it.
        for name in set(sys.modules) - before:
            if name not in sys.builtin_module_names:
                del sys.modules[name]
        for name in names:
            if kept[name] is not None:
                sys.modules[name] = kept[name]


_folder = os.path.dirname(os.path.abspath(__file__))
_take_our_folder_off(_folder)
_attach(_folder)

# Chain: what a plain start would have imported under this name. When there is none, the
# ImportError tells the site module just what a plain start would have told it.
_ours = sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
