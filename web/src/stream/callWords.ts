import { callerInside, callsOfLinked, isEnded, isQuestion } from "@/stream/calls";
import { graphAt, splitPath } from "@/stream/draft";
import { indexOfGraph } from "@/stream/graphIndex";
import { argumentsText } from "@/stream/log";
import type { NodeState, RunState, ToolCall } from "@/stream/runState";

/** Returns the name of what an agent calls: another agent by its own name. `path` is of the caller. */
export function callName(run: RunState, path: string, call: ToolCall): string {
  if (call.kind !== "agent") return call.name;
  const graph = graphAt(run, splitPath(path).prefix);
  return (graph && indexOfGraph(graph).nodes.get(call.nodeId)?.name) || call.nodeId || call.name;
}

/** Returns the steps that ran inside a call: another agent, or those of a flow. */
export function innerNodes(run: RunState, { runPrefix }: ToolCall): NodeState[] {
  if (runPrefix === null) return [];
  const caller = callerInside(run, runPrefix);
  return [...run.nodes.values()].filter(
    (node) => node.prefix === runPrefix && node.path !== caller && !isQuestion(node),
  );
}

/** Returns how long a call has taken, null where it was never made. `now` is in ms. */
export function callSeconds({ startedAt, endedAt }: ToolCall, now: number): number | null {
  if (startedAt === null) return null;
  return Math.max(
    0,
    ((endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt)) / 1000,
  );
}

/** Returns the calls of the newest attempt. */
export function presentCalls({ calls, attempt }: NodeState): ToolCall[] {
  return calls.filter((call) => call.attempt === attempt);
}

/** "look_up_order: A-17" of the newest call that is being made; "" without one. */
export function currentCallWords(run: RunState, node: NodeState): string {
  const call = presentCalls(node).findLast((each) => !isEnded(each));
  if (call === undefined) return "";
  const given = call.progress || argumentsText(call.arguments);
  const name = callName(run, node.path, call);
  return given && given !== "{}" ? `${name}: ${given}` : name;
}

/** "Called 2 times, by Lead and Clerk"; "" of a linked node that nobody has called. */
export function linkedWords(run: RunState, node: NodeState): string {
  const calls = callsOfLinked(run, node);
  const running = calls.find(({ call }) => call.status === "running");
  if (running) return `${running.caller.name} is calling it`;
  if (calls.length === 0) return "";
  const callers = NAMES.format(new Set(calls.map(({ caller }) => caller.name)));
  return `Called ${calls.length === 1 ? "once" : `${calls.length} times`}, by ${callers}`;
}

const NAMES = new Intl.ListFormat("en");
