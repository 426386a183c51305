"""Where a window differs from a plain directory by design: one narrow rule each, with its reason.

`documented(op, answer, before)` gets what the mount answered, and how the plain side looked before the call. It names
the rule, and the operation then falls away on the plain side; or None, and both sides must agree.
"""
import stat

import names


def is_directory(look):
    return look[1] is not None and stat.S_ISDIR(int(look[0]["mode"], 8))


def directory_changes_class(op, answer, sides, before):
    """DESIGN 3: a directory whose descendants would change class, or that has protected files in the lower, is copied."""
    if op["do"] != "rename" or answer != "EXDEV":
        return False
    for side, other in (sides, sides[::-1]):
        if side["directory"]:
            if names.is_protected(side["name"]) != names.is_protected(other["name"]):
                return True
            if any(path.startswith(side["name"] + "/") and not names.is_protected(side["name"]) for path in before):
                return True
    return False


RULES = (directory_changes_class,)


def documented(op, answer, sides, protected_before):
    """The name of the rule by which the mount may answer so, or None.

    sides: of a rename, [{name, directory}, ...]; protected_before: protected paths of the lower among the code.
    """
    return next((rule.__name__ for rule in RULES if rule(op, answer, sides, protected_before)), None)
