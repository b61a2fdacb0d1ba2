"""How several processes share the tests out: pytest-xdist gives each a group at a time."""

from xdist.scheduler import LoadScopeScheduling

ALONE = ("tests/integration/", "tests/e2e/")


class Groups(LoadScopeScheduling):  # type: ignore[misc]  # it comes without types
    """Live cells go to one and the same process, one after the other, as each wants the machine for
    itself and the tests of a package share one; of the rest a module goes at a time."""

    def _split_scope(self, nodeid: str) -> str:
        for folder in ALONE:
            if nodeid.startswith(folder):
                return folder
        return nodeid.partition("::")[0]
