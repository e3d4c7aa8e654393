"""Headers with secrets of the operator: a graph names them, and their values go to certain services only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final

from pydantic import Field

from planwave.errors import OutboundError, PermanentError
from planwave.expressions import has_template, to_text
from planwave.graph.diagnostics import Severity
from planwave.graph.protocols import FlowContext
from planwave.graph.suggestions import closest_match
from planwave.nodes.authoring.data_fields import POLICY
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.secrets import Secret, redactor_of, secret_names, with_secrets
from planwave.nodes.services import secrets_of
from planwave.outbound.urls import check_headers

FIELD: Final = "secretHeaders"
SecretHeadersField = Annotated[
    dict[str, str],
    Field(
        description='Headers with secrets of the operator, which are named in braces: "Bearer {crm}". '
        "They are sent to the services of the secret only.",
        json_schema_extra=POLICY,
    ),
]


class SecretHeaders:
    """The headers of one node for an address.

    Args:
        written: The headers as the graph has them, by name.
        url: The address that they go to.
        context: The context of the node.

    Attributes:
        redactor: Withholds the values from what the service answers.

    Raises:
        NodeError: ``invalid-data``; ``unknown-secret``; ``secret-refused``: a secret may not be sent there.
    """

    def __init__(self, written: Mapping[str, str], url: str, context: FlowContext) -> None:
        for finding in _form_findings(written):
            raise PermanentError(finding.message, code=finding.code, hint=finding.hint)
        names = secret_names(" ".join(written.values()))
        known: Mapping[str, Secret] = secrets_of(context) if names else {}
        self._written = written
        self._secrets = {name: _usable_secret(name, url, known, context) for name in names}
        self.redactor = redactor_of(self._secrets.values())

    def values(self) -> dict[str, str]:
        """Return the headers with the values of the secrets, to be sent and never stored."""
        return {header: with_secrets(text, self._secrets) for header, text in self._written.items()}


def check_secret_headers(
    written: Mapping[str, str], view: NodeView, unknown: Severity = "error"
) -> Iterator[NodeFinding]:
    """Yield what is wrong with headers: they cannot be sent, or name no secret, or an unknown one.

    Args:
        written: The headers as the graph has them, by name.
        view: The node.
        unknown: How severe a secret is that the operator has not set.
    """
    yield from _form_findings(written)
    known = view.index.secrets
    for header, text in written.items():
        for name in secret_names(text):
            if known is not None and name not in known:
                pointer, hint = f"/data/{FIELD}/{header}", _secret_hint(name, known)
                yield NodeFinding("unknown-secret", _no_secret(name), pointer, hint, unknown)


def _form_findings(written: Mapping[str, str]) -> Iterator[NodeFinding]:
    yield from check_header_texts(FIELD, written)
    for header, text in written.items():
        if not secret_names(text):
            yield NodeFinding(
                "invalid-data",
                f"data.{FIELD}.{header} names no secret",
                f"/data/{FIELD}/{header}",
                hint='name one in braces, as in "Bearer {crm}"; headers without a secret go into '
                "data.headers",
            )


def check_header_texts(field: str, headers: Mapping[str, str]) -> Iterator[NodeFinding]:
    """Yield an error for headers that cannot be sent, unless a template makes them."""
    if has_template(to_text(dict(headers))):
        return
    try:
        check_headers(headers)
    except OutboundError as error:
        yield NodeFinding("invalid-data", error.message, f"/data/{field}", error.hint)


def _usable_secret(
    name: str, url: str, secrets: Mapping[str, Secret], context: FlowContext
) -> Secret:
    secret = secrets.get(name)
    if secret is None:
        raise PermanentError(
            f"node {context.node_id!r}: {_no_secret(name)}",
            code="unknown-secret",
            hint=_secret_hint(name, secrets),
        )
    if not secret.may_be_sent_to(url.strip()):
        raise PermanentError(
            f"node {context.node_id!r}: the secret {name!r} may not be sent to this address",
            code="secret-refused",
            hint=f"the operator allows it for {', '.join(secret.hosts)}; see [secrets.{name}] hosts",
        )
    return secret


def _no_secret(name: str) -> str:
    return f"the operator has no secret {name!r}, or it has no value"


def _secret_hint(name: str, names: Iterable[str]) -> str:
    near = closest_match(name, sorted(names))
    if near:
        return f"did you mean {near!r}?"
    return f"add [secrets.{name}] with env and hosts to planwave.toml, and set that variable"
