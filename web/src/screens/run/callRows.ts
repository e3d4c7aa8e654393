import { CALL_LOOKS } from "@/inspector/callLooks";
import { callName, callSeconds } from "@/stream/callWords";
import type { NodeState, RunState, ToolCall } from "@/stream/runState";
import { formatDuration } from "@/ui/format";
import type { Bar, TimelineRow } from "./Timeline";

export type CallRow = { row: TimelineRow; runPrefix: string | null; isOfAgent: boolean };

/** Returns the rows of the timeline for the calls of an agent, by start; each opens its agent.
 *
 * `zero` and `now` are in ms. */
export function callRows(
  run: RunState,
  node: NodeState,
  depth: number,
  { zero, now }: { zero: number; now: number },
): CallRow[] {
  const timed = node.calls.filter((call) => beginOf(call) !== null);
  timed.sort((a, b) => ((beginOf(a) ?? "") < (beginOf(b) ?? "") ? -1 : 1));
  return timed.map((call) => {
    const seconds = callSeconds(call, now);
    const { icon, word } = CALL_LOOKS[call.status];
    return {
      runPrefix: call.runPrefix,
      isOfAgent: call.kind === "agent",
      row: {
        path: `${node.path} ${call.attempt} ${call.id}`,
        opens: node.path,
        name: callName(run, node.path, call),
        status: icon,
        depth,
        bars: barsOf(call, zero, now),
        label: seconds === null ? word.toLowerCase() : formatDuration(seconds),
        isCritical: false,
      },
    };
  });
}

function beginOf({ askedAt, startedAt }: ToolCall): string | null {
  return askedAt ?? startedAt;
}

/** The time in which a person decides, and that of the call itself. */
function barsOf(call: ToolCall, zero: number, now: number): Bar[] {
  const { askedAt, startedAt, endedAt } = call;
  const bars: Bar[] = [];
  const add = (kind: Bar["kind"], from: string, to: string | null) =>
    bars.push({
      kind,
      status: kind === "wait" ? "waiting" : CALL_LOOKS[call.status].icon,
      from: Math.max(0, (Date.parse(from) - zero) / 1000),
      to: Math.max(0, ((to === null ? now : Date.parse(to)) - zero) / 1000),
      ...(to === null && { isOpen: true }),
    });
  if (askedAt !== null) add("wait", askedAt, startedAt ?? endedAt);
  if (startedAt !== null) add("work", startedAt, endedAt);
  return bars;
}
