"""Where a window differs from a plain directory by design: one narrow rule each, with its reason.

A rule is asked only when the mount answered EXDEV, and the operation then falls away on the plain side. Two more
differences are the kernel's: a fifo's times do not change with what is written to it (fs/fuse sets S_NOCMTIME), which
twin.py and perform.py leave out; and times are not compared to the value, only by whether they changed.

Written through a map: the mtime moves when the kernel passes it on (msync, munmap, or by itself), not at the first
touch of a page; perform.py calls msync. And a file's setuid and setgid survive that, but not the write by which forget passes it on, where
forget has no CAP_FSETID (an ordinary user). perform.py makes no such writes.
"""
import stat

import names


def is_directory(look):
    return look[1] is not None and stat.S_ISDIR(int(look[0]["mode"], 8))


def is_fifo(look):
    return look[1] is not None and stat.S_ISFIFO(int(look[0]["mode"], 8))


def directory_changes_class(side, other, protected_before):
    """DESIGN 3: a directory whose descendants would change class is copied, so that each file is judged by itself."""
    return names.is_protected(side["name"]) != names.is_protected(other["name"])


def directory_holds_protected(side, other, protected_before):
    """docs/decisions.md: the lower's rename would move protected files along; they keep their names there."""
    return not names.is_protected(side["name"]) and any(p.startswith(side["name"] + "/") for p in protected_before)


def directory_meets_caught(side, other, protected_before):
    """An unprotected directory cannot change places in the lower with what is in the upper alone, or covers an original."""
    return not names.is_protected(side["name"]) and (other["caught"] or other["original"])


RULES = (directory_changes_class, directory_holds_protected, directory_meets_caught)


def exchange_meets_caught(one, two):
    """docs/decisions.md: a file that sticks to the upper does not change places with one that stays real."""
    unprotected = not names.is_protected(one["name"]) and not names.is_protected(two["name"])
    return unprotected and bool(one["caught"]) != bool(two["caught"])


def documented(sides, protected_before, exchange):
    """The name of the rule by which a rename may be EXDEV, or None.

    exchange: it is a RENAME_EXCHANGE;
    sides: [{name, directory, caught, original}, ...] of both names; protected_before: protected paths among the code.
    """
    if exchange and sides and exchange_meets_caught(*sides):
        return exchange_meets_caught.__name__
    for side, other in (sides, sides[::-1]) if sides else ():
        for rule in RULES:
            if side["directory"] and rule(side, other, protected_before):
                return rule.__name__
    return None
