"""Names by which a stack program can tell a review from an update, or do what a review cannot follow."""

from collections.abc import Mapping
from typing import Final, Literal

Kind = Literal["shadow", "watched", "machine", "code", "network", "module", "output"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: Final[Mapping[Kind, frozenset[str]]] = {
    "watched": _words("pulumi.runtime inspect traceback gc psutil __main__ tpucfg"),
    "machine": _words("platform glob getpass time random secrets uuid datetime pwd"),
    "code": _words(
        "pulumi.automation pulumi.provider importlib runpy ctypes cffi subprocess multiprocessing pickle marshal "
        "atexit zipimport site"
    ),
    "network": _words("socket ssl urllib http requests httpx aiohttp grpc ftplib smtplib xmlrpc urllib3"),
}
"""Modules whose import shows that they are used, and all modules below them."""
IMPORTED_ONLY: Final = _words("__main__ tpucfg platform time random secrets uuid datetime pwd site http ssl gc")
"""Modules whose names are also common names of other things."""
NAMES: Final[Mapping[Kind, frozenset[str]]] = {
    # Of Pulumi's library for tests and of the process that runs the program.
    "watched": _words(
        "MockMonitor MockSettings MockEngine Mocks set_mocks mocks get_monitor get_engine is_dry_run GoogleMocks "
        "RecordingMonitor is_test_mode_enabled runtime.settings SETTINGS _getframe _current_frames sys.modules "
        "sys.argv sys.orig_argv sys.path sys.meta_path sys.executable getppid get_organization is_known f_back "
        "tb_frame pulumi.runtime get_root_directory all_tasks"
    ),
    "machine": _words(
        "environ environb getenv getlogin gethostname uname getpid getcwd __file__ exists is_file is_dir read_text "
        "read_bytes listdir scandir iterdir Path.home Path.cwd expanduser urandom"
    ),
    "code": _words(
        "__subclasses__ __globals__ __builtins__ __code__ __getattribute__ os.system popen fork execv execve execvp "
        "spawnl spawnv posix_spawn settrace setprofile addaudithook create_subprocess_exec "
        "create_subprocess_shell exec_module FunctionType CodeType"
    ),
    "network": _words("open_connection create_connection"),
    "output": _words("future"),
}
"""Names that are found wherever they are used; one with a dot only after the name before the dot."""
BUILTINS: Final[Mapping[Kind, frozenset[str]]] = {
    "machine": _words("open hash input"),
    "code": _words("exec eval compile __import__ globals vars setattr delattr breakpoint"),
}
"""Functions without a module, whose names methods of other things can have too."""
HARMLESS_MODULES: Final = _words(
    "__future__ abc asyncio base64 collections copy dataclasses decimal enum fractions functools hashlib ipaddress "
    "itertools json math os pathlib re string sys textwrap types typing typing_extensions pulumi tpucfg"
)
"""Modules that declare nothing else and know little of the machine; most others can do more than a program needs."""
GUARDED_MODULES: Final[Mapping[str, frozenset[str]]] = {
    "os": _words("path fspath sep linesep PathLike environ environb getenv system"),
    "sys": _words("stdout stderr exit excepthook modules argv orig_argv path meta_path executable _getframe"),
}
"""Modules of which only some names are harmless, or are found anyway."""
PATH_FUNCTIONS: Final = _words("join basename dirname normpath relpath splitext commonpath isabs split")
"""Functions of `os.path` that only read their arguments."""
OWN_ATTRIBUTES: Final = _words(
    "__name__ __qualname__ __doc__ __init__ __new__ __post_init__ __init_subclass__ __enter__ __exit__ __annotations__ "
    "__file__ __version__ __all__"
)
"""Names with two underscores that harmless programs use; others lead from a value to all others."""
SIMPLE_FUNCTIONS: Final = _words(
    "str int float len list dict tuple sorted format join split strip lower upper replace removeprefix removesuffix "
    "dumps loads encode decode b64encode b64decode"
)
"""Functions that only calculate a value, in `output.apply(lambda value: …)`."""
ALLOWED_MODULES: Final = _words(
    "tpucfg.catalog tpucfg.findings tpucfg.infra.pulumi_project tpucfg.infra.stack_files tpucfg.plan "
    "tpucfg.render.pipeline tpucfg.spec tpucfg.targets.common tpucfg.yamldoc"
)
"""Modules of tpucfg that the bundled program imports: they read the spec, and do not know a review."""
