import type {
  ExecutionEvent,
  NodeAnsweredData,
  NodeEventEvent,
  NodeStartedData,
  PausedData,
} from "@/api/types";
import { isObject } from "@/json";
import { callPhase, isEnded } from "@/stream/calls";
import { indexOfGraph } from "@/stream/graphIndex";
import { fieldOf, isTimer, toText } from "@/stream/json";
import { changeText, requestOfChange } from "@/stream/planChanges";
import type { LogEntry, RunState } from "@/stream/runState";

const SYSTEM = "system";

type Line = readonly [type: LogEntry["type"], text: string];

/**
 * Return the log entry of an event, null for an event that is not logged.
 *
 * The entries are those of the service's typed log, and the lines that nodes log.
 *
 * @param before The state before the event.
 */
export function logEntry(before: RunState, event: ExecutionEvent): LogEntry | null {
  const line = lineOf(before, event);
  if (line === null) return null;
  const [type, text] = line;
  return { seq: event.seq, at: event.at, path: event.path ?? SYSTEM, type, text };
}

function lineOf(before: RunState, event: ExecutionEvent): Line | null {
  switch (event.type) {
    case "node.started":
      return startedLine(before, event.path, event.data);
    case "node.event":
      return nodeEventLine(before, event);
    case "node.log":
      // Warnings are in the log of the service too.
      return [event.data.level === "warning" ? "logic_check" : "log", toText(event.data.message)];
    case "node.waiting": {
      const request = event.data.request;
      return [isTimer(request) ? "timer" : "wait_input", requestText(request)];
    }
    case "node.answered":
      return answeredLine(before, event.data);
    case "node.completed":
      return wasPrompted(before, event.path)
        ? ["llm_response", resultText(event.data.outputs)]
        : null;
    case "node.failed":
    case "node.retrying": {
      const type = wasPrompted(before, event.path) ? "llm_error" : "error";
      const again = event.type === "node.retrying" ? "; tries again" : "";
      return [type, errorMessage(event.data.error) + again];
    }
    case "node.cancelled":
      // Without an attempt the node never ran.
      return event.attempt === undefined ? null : cancelledLine(event.data.cause);
    default:
      return executionLine(event);
  }
}

function executionLine(event: ExecutionEvent): Line | null {
  switch (event.type) {
    case "execution.paused":
      if (event.data.request_id !== undefined) {
        return ["wait_input", requestText(event.data.request)];
      }
      return pauseKind(event.data) === "waiting"
        ? null // the request has an entry
        : ["wait_input", `Execution paused: ${event.data.reason}`];
    case "execution.resumed":
      if (event.data.request_id !== undefined) {
        const { answer, reason } = event.data;
        return ["input_received", answer === undefined ? String(reason) : answerText(answer)];
      }
      return resumedLine(event.data.reason);
    case "plan.revised":
      return ["input_received", `Plan changed: ${changeText(event.data)}`];
    case "plan.requested":
      return ["wait_input", `A change of the plan ${requestOfChange(event.data)}`];
    case "plan.refused":
      return ["input_received", `Plan not changed: ${errorMessage(event.data.error)}`];
    case "execution.warned":
      return ["logic_check", event.data.message];
    case "execution.cancelled":
      return cancelledLine(event.data.cause);
    case "execution.failed": {
      const { error } = event.data;
      return error && "node" in error ? null : ["error", errorMessage(error)];
    }
    default:
      return null;
  }
}

function startedLine(
  before: RunState,
  path: string,
  data: Pick<NodeStartedData, "name" | "reentry">,
): Line {
  const node = before.graph ? indexOfGraph(before.graph).nodes.get(path) : undefined;
  const named = node?.name && node.name !== node.id ? `${node.name} ` : "";
  const title = node ? `${named}${node.type} node` : (data.name ?? path);
  return ["step_start", data.reentry ? `${title}, again: it was cut off` : title];
}

function nodeEventLine(before: RunState, event: NodeEventEvent): Line | null {
  const { event_type: type, data } = event.data;
  if (type === "prompt") {
    const isRepeated = before.nodes.get(event.path)?.prompts.includes(toText(data));
    return isRepeated ? null : ["start_prompt", toText(fieldOf(data, "prompt"))];
  }
  if (type === "message") return ["message", messageText(data)];
  if (type === "logic_check") return [type, toText(fieldOf(data, "message") ?? data)];
  return callLine(before, event);
}

/** A call of a tool or of another agent: its name with its arguments, its result or its error. */
function callLine(before: RunState, { path, attempt, data: event }: NodeEventEvent): Line | null {
  const { event_type: type, data } = event;
  const phase = callPhase(type);
  if (phase === null || phase === "progress") return null;
  const id = fieldOf(data, "call_id");
  const known = before.nodes
    .get(path)
    ?.calls.find((call) => call.id === id && call.attempt === attempt);
  // The end of a recorded call is told again where an attempt is entered again.
  if (phase !== "start" && known !== undefined && isEnded(known)) return null;
  const name = fieldOf(data, "name");
  const text = name === undefined ? toText(fieldOf(data, "message") ?? data) : `${name}: `;
  return [type as LogEntry["type"], name === undefined ? text : text + callText(data)];
}

function callText(data: unknown): string {
  const error = fieldOf(data, "error");
  if (isObject(error)) return errorMessage(error);
  const result = fieldOf(data, "result");
  return result === undefined ? argumentsText(fieldOf(data, "arguments")) : toText(result);
}

/** Return arguments as text: a single one by its value, such as the task of an agent. */
export function argumentsText(given: unknown): string {
  const values = isObject(given) ? Object.values(given) : [];
  return toText(values.length === 1 ? values[0] : given);
}

function answeredLine(
  before: RunState,
  data: Pick<NodeAnsweredData, "request_id" | "answer" | "by">,
): Line {
  const isLate = data.by === "timeout";
  if (isLate && isTimer(before.requests.get(data.request_id)?.request)) {
    return ["timer", "The time has come."];
  }
  const late = isLate ? "Nobody answered in time: " : "";
  return ["input_received", `${late}${answerText(data.answer)}`];
}

function resumedLine(reason: string | undefined): Line | null {
  if (reason === "answered") return null; // the answer has an entry
  if (reason === "recovery") {
    return [
      "step_start",
      "Execution resumed in another process: the one before had ended or was cut off",
    ];
  }
  return ["input_received", `Execution resumed: ${reason}`];
}

function cancelledLine(cause: unknown): Line {
  return ["error", `Cancelled: ${toText(cause)}`];
}

function wasPrompted(before: RunState, path: string): boolean {
  return before.nodes.get(path)?.prompted ?? false;
}

/** Return the kind of a pause; older events have only its reason. */
export function pauseKind(data: Pick<PausedData, "kind" | "reason">): RunState["pause"] {
  const { kind, reason } = data;
  if (kind === "waiting" || (kind === undefined && reason === "waiting for an answer")) {
    return "waiting";
  }
  const isRequested =
    kind === "requested" || (kind === undefined && reason === "paused by request");
  return isRequested ? "requested" : "set-aside";
}

/** Return a node's result as text: its `output`, else its first output. */
export function resultText(outputs: Record<string, { value: unknown }> | null | undefined): string {
  return toText(resultValue(outputs));
}

/** Return the main result of a node. */
export function resultValue(
  outputs: Record<string, { value: unknown }> | null | undefined,
): unknown {
  return (outputs?.output ?? Object.values(outputs ?? {})[0])?.value;
}

/** Return a request as text: its question where it has one, else the whole request. */
function requestText(request: unknown): string {
  for (const name of ["prompt", "message", "question"]) {
    const text = fieldOf(request, name);
    if (typeof text === "string" && text !== "") return text;
  }
  return toText(request);
}

/** Return an answer as text: the decision with its note, or any other answer. */
function answerText(answer: unknown): string {
  const decision = fieldOf(answer, "decision");
  if (typeof decision !== "string") return toText(answer) || "nothing";
  const edited = fieldOf(answer, "value") === undefined ? "" : " (with a value)";
  const note = fieldOf(answer, "note");
  return typeof note === "string" && note ? `${decision}${edited}: ${note}` : decision + edited;
}

function messageText(data: unknown): string {
  return toText(isObject(data) ? data.text : data);
}

function errorMessage(error: { message?: unknown; code?: unknown } | undefined): string {
  return String(error?.message || error?.code || "unknown error");
}
