"""``http_tool``: one request to an HTTP service, as a tool."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, cast

from pydantic import Field

from planwave.errors import LimitExceeded, OutboundError, PermanentError, ToolError
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json
from planwave.graph.protocols import EffectByField, FlowContext
from planwave.graph.suggestions import closest_match
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.checking.tool_schemas import NO_ARGUMENTS, check_parameters
from planwave.nodes.services import outbound_of
from planwave.nodes.tools.http_bodies import (
    Scalar,
    body_text,
    header_texts,
    json_content,
    response_value,
)
from planwave.nodes.tools.secret_headers import (
    SecretHeaders,
    SecretHeadersField,
    check_header_texts,
    check_secret_headers,
)
from planwave.nodes.tools.tool_node import ApprovalField, ToolName, ToolNode, name_in
from planwave.nodes.tools.url_template import UrlTemplate, UrlTemplateError, parse_url_template
from planwave.outbound.client import OutboundResponse

_READING: Final = EffectByField("method", {"GET": "read", "HEAD": "read"}, absent="read")
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_MAX_BODY_CHARS: Final = 500
"""The start of the body of an error that the model sees."""


class HttpToolData(NodeData):
    """The request, and what the model reads about it."""

    name: ToolName = Field(description="What the model calls it.")
    description: str = template(description="What it does and when to use it, for the model.")
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "GET",
        description="What the request does; GET and HEAD only read.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )
    url: str = Field(
        description="The address; {name} in its path or query is the argument of that name."
    )
    parameters: dict[str, Json] = Field(
        NO_ARGUMENTS, description="The JSON Schema of the arguments, an object."
    )
    headers: dict[str, Scalar] = template({}, description="Headers to send.")
    secret_headers: SecretHeadersField = Field({})
    approval: ApprovalField = None
    timeout_s: float | None = Field(
        None, gt=0, description="The time of one call, in seconds; null for that of the agent."
    )


class HttpTool(ToolNode):
    """Gives a tool that sends one HTTP request; its result is JSON where the content type says so, else text.

    Arguments fill the placeholders of ``url``, percent-encoded, and cannot change its host, its path
    or the names in its query. The other arguments are the body, as JSON, for POST, PUT and PATCH, and
    else parameters of the query. A status from 400 on is an error that the model sees.
    ``secretHeaders`` names secrets of the operator (``[secrets.NAME]``), which are sent to the
    services that the operator allows and are never shown. Requests that write have an
    ``Idempotency-Key``, the same when a call is made again after a crash.
    """

    node_type = "http_tool"
    purpose = "Give an agent a tool that calls an HTTP service: method, address with {placeholders}, schema."
    summary = "Give an agent a tool that calls a web service."
    Data = HttpToolData
    effect = "write"
    effect_by = _READING
    uses_services = True

    async def make(self, data: HttpToolData, inputs: Inputs, context: FlowContext) -> Tool:
        finding = next(_findings(data, frozenset()), None)
        if finding is not None:
            raise PermanentError(
                f"node {context.node_id!r}: {finding.message}", code=finding.code, hint=finding.hint
            )
        request = _Request(data, parse_url_template(data.url), context)
        return Tool(
            data.name,
            data.description,
            {"additionalProperties": False, **data.parameters},
            request.send,
            _READING.effects.get(data.method, self.effect),
            data.approval or "never",
            kind="http",
            timeout_s=data.timeout_s,
            details={"method": data.method, "host": request.template.origin},
        )

    def tool_names(self, data: Mapping[str, Json]) -> Sequence[str]:
        return name_in(data)

    def check_data(self, data: HttpToolData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        checked = ("url", "parameters", "headers", "secretHeaders")
        wired = {field for field in checked if view.is_wired(field)}
        yield from _findings(data, wired)
        yield from (
            () if "secretHeaders" in wired else check_secret_headers(data.secret_headers, view)
        )


class _Request:
    """The request of a tool; one for all its calls."""

    def __init__(
        self,
        data: HttpToolData,
        template: UrlTemplate,
        context: FlowContext,
    ) -> None:
        self.template = template
        self._data = data
        self._client = outbound_of(context)
        self._secrets = SecretHeaders(data.secret_headers, data.url, context)
        self._redactor = self._secrets.redactor

    async def send(self, arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
        """Send it with the arguments of a call; see ``CallTool``."""
        data = self._data
        rest = {key: value for key, value in arguments.items() if key not in self.template.names}
        self._check_names(rest)
        headers = header_texts(data.headers)
        content: bytes | None = None
        in_query: Mapping[str, Json] = rest
        if data.method in _WITH_BODY:
            in_query = {}
            content = json_content(rest, headers) if rest else None
        if data.method not in _READING.effects:
            _set_default(headers, _IDEMPOTENCY_KEY, context.idempotency_key)
        url = self.template.fill(arguments, in_query)
        try:
            response = await self._client.request(
                data.method, url, headers={**headers, **self._secrets.values()}, content=content
            )
            return self._redactor.value(self._result(response))
        except (OutboundError, LimitExceeded, ToolError) as error:
            raise ToolError(self._redactor.text(error.message), code=error.code) from None

    def _check_names(self, rest: Mapping[str, Json]) -> None:
        """Refuse arguments that the schema does not have, or that would repeat a name of the query."""
        properties = _properties(self._data)
        is_open = self._data.parameters.get("additionalProperties", False) is not False
        for name in rest:
            if (name not in properties and not is_open) or name in self.template.query_keys:
                raise ToolError(f"there is no argument {name!r}", code="invalid-arguments")

    def _result(self, response: OutboundResponse) -> Json:
        is_head = self._data.method == "HEAD"
        if response.status >= 400:
            body = self._redactor.text(body_text(response))[:_MAX_BODY_CHARS].strip()
            status = f"{response.status} {response.reason}".rstrip()
            raise ToolError(
                f"{self._data.method} {response.url} answered {status}"
                + (f": {body}" if body else ""),
                code="http-status",
            )
        return dict(response.headers) if is_head else response_value(response, is_head=False)


def _set_default(headers: dict[str, str], name: str, value: str) -> None:
    if value and not any(each.lower() == name.lower() for each in headers):
        headers[name] = value


def _properties(data: HttpToolData) -> Mapping[str, Json]:
    properties = data.parameters.get("properties")
    return cast("dict[str, Json]", properties) if isinstance(properties, dict) else {}


def _findings(data: HttpToolData, wired: Collection[str]) -> Iterator[NodeFinding]:
    """Find what is wrong with a tool's data, apart from fields that are wired."""
    yield from () if "parameters" in wired else check_parameters(data.parameters)
    if "url" not in wired:
        yield from _url_findings(data, check_schema="parameters" not in wired)
    if "headers" not in wired:
        yield from check_header_texts("headers", header_texts(data.headers))


def _url_findings(data: HttpToolData, *, check_schema: bool) -> Iterator[NodeFinding]:
    try:
        template = parse_url_template(data.url)
    except UrlTemplateError as error:
        yield NodeFinding("invalid-data", str(error), "/data/url", error.hint)
        return
    if not check_schema:
        return
    properties = _properties(data)
    required = data.parameters.get("required")
    demanded = cast("list[Json]", required) if isinstance(required, list) else []
    for name in sorted(template.names - properties.keys()):
        near = closest_match(name, sorted(properties))
        hint = f"did you mean {near!r}?" if near else "add it to the properties of data.parameters"
        message = f"{{{name}}} in data.url is no argument of the tool"
        yield NodeFinding("invalid-data", message, "/data/url", hint)
    for name in dict.fromkeys(template.path_names):
        if name in properties and name not in demanded:
            message = f"{{{name}}} is in the path of data.url, but may be left out"
            hint = f'add "{name}" to the list data.parameters.required'
            yield NodeFinding("invalid-data", message, "/data/parameters", hint)
    for name in sorted((properties.keys() - template.names) & template.query_keys):
        message = f"the query of data.url has the name of the argument {name!r} already"
        hint = f"write {name}={{{name}}} in the query, or give the argument another name"
        yield NodeFinding("invalid-data", message, "/data/url", hint)
