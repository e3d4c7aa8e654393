"""Who does something: the value that executions, answers, edits and the audit log record.

The edges of planwave (the API, the MCP server, triggers, chats) say on whose behalf they call the
service with ``acting_as``; the service records ``current_principal``. Where nobody said
anything it is this machine's own user, as in a command.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict

PrincipalKind = Literal[
    "operator", "session", "token", "trigger", "chat", "local", "library", "link"
]
KINDS: Final[tuple[PrincipalKind, ...]] = get_args(PrincipalKind)
_OPERATOR_ACCOUNT: Final = "operator"


class PrincipalDocument(TypedDict):
    """Who did something."""

    kind: PrincipalKind
    """`operator`: with the service's token; `session`: a browser that logged in with it; `token`: an
    access token; `trigger`; `chat`; `local`: the command line, or anybody where the service has no
    token; `library`: a Python program; `link`: whoever has a link that answers a request."""
    id: NotRequired[str]
    """Of the session, token, trigger, chat or link; left out where there is none."""
    name: NotRequired[str]
    """The name of a token, the kind of a trigger, the target of the notification that had the link."""
    by: NotRequired[PrincipalDocument]
    """Who set up the trigger or the chat, or created the link."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who does something.

    Attributes:
        kind: ``operator``: the bearer of the service's token; ``session``: a browser that logged in
            with it; ``token``: an access token; ``trigger``: a webhook, schedule or stream;
            ``chat``: a reply in a chat; ``local``: the command line, or a client of a service
            without a token; ``library``: a Python program; ``link``: the bearer of a link.
        id: The id of the session, token, trigger, chat or link.
        name: The name of a token, the kind of a trigger, the target of the notification that had the link.
        by: The principal that set up the trigger or the chat, or created the link.
    """

    kind: PrincipalKind
    id: str | None = None
    name: str | None = None
    by: Principal | None = None

    @property
    def account(self) -> str:
        """Identifies whose rates, quotas and share of the service the principal uses.

        A trigger or a chat uses those of the principal that set it up; a link has its own, because anybody may have it.
        Whatever else has no access token is the operator's.
        """
        if self.kind == "link":
            return f"link {self.id}"
        if self.by is not None:
            return self.by.account
        return f"token {self.id}" if self.kind == "token" else _OPERATOR_ACCOUNT

    @property
    def token_id(self) -> str | None:
        """The access token on whose behalf it acts, if there is one."""
        if self.by is not None:
            return self.by.token_id
        return self.id if self.kind == "token" else None

    def as_json(self) -> PrincipalDocument:
        """Return the principal as JSON, without what it has not."""
        document: PrincipalDocument = {"kind": self.kind}
        if self.id is not None:
            document["id"] = self.id
        if self.name is not None:
            document["name"] = self.name
        if self.by is not None:
            document["by"] = self.by.as_json()
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any] | PrincipalDocument | None) -> Principal | None:
        """Return the principal of a document; None for None, or for a kind of a newer planwave."""
        if document is None or document.get("kind") not in KINDS:
            return None
        fields = cast("PrincipalDocument", document)
        by = cls.from_json(fields.get("by"))
        return cls(fields["kind"], fields.get("id"), fields.get("name"), by)

    @classmethod
    def from_text(cls, text: str | None) -> Principal | None:
        """Return the principal that ``principal_text`` wrote."""
        return None if text is None else cls.from_json(json.loads(text))

    def __str__(self) -> str:
        """Return the principal in words, such as ``token 'crm'`` or ``schedule trigger``."""
        match self.kind:
            case "operator":
                return "operator"
            case "session":
                return "operator (browser)"
            case "token" | "chat":
                return f"{self.kind} {self.name or self.id!r}"
            case "trigger":
                return f"{self.name} trigger" if self.name else "trigger"
            case "local":
                return "local user"
            case "library":
                return "Python program"
            case "link":
                if self.by is not None:
                    return f"link of {self.by}"
                return f"link sent to {self.name!r}" if self.name else "link"


def principal_json(principal: Principal | None) -> PrincipalDocument | None:
    """Return a principal as JSON; None where it is not known."""
    return None if principal is None else principal.as_json()


def principal_text(principal: Principal | None) -> str | None:
    """Return the text of a principal in a database, in ASCII; None where it is not known."""
    return None if principal is None else json.dumps(principal.as_json())


OPERATOR: Final = Principal("operator")
LOCAL: Final = Principal("local")
LIBRARY: Final = Principal("library")

_current: ContextVar[Principal] = ContextVar("planwave_principal", default=LOCAL)


def current_principal() -> Principal:
    """Return the principal on whose behalf the caller acts."""
    return _current.get()


def set_principal(principal: Principal) -> Token[Principal]:
    """Set the principal until the end of the surrounding ``acting_as``, or of the task."""
    return _current.set(principal)


@contextmanager
def acting_as(principal: Principal) -> Generator[None]:
    """Record a principal for what is done in the block, also by tasks that it starts."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)
