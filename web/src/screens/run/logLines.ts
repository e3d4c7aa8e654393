import { agentPath, isQuestion } from "@/stream/calls";
import type { LogEntry, RunState } from "@/stream/runState";

const known = new WeakMap<RunState["log"], LogEntry[]>();

/** Returns the lines of the log of a run: a question about a call is one of the agent that asks. */
export function logLines(run: RunState): readonly LogEntry[] {
  let lines = known.get(run.log);
  if (!lines) {
    lines = run.log.flatMap((entry) => lineOf(run, entry));
    known.set(run.log, lines);
  }
  return lines;
}

function lineOf(run: RunState, entry: LogEntry): LogEntry[] {
  const node = run.nodes.get(entry.path);
  const agent = node && isQuestion(node) ? agentPath(entry.path) : null;
  if (agent === null) {
    const isStart = entry.type === "step_start" && node?.type != null;
    return [isStart ? { ...entry, text: startText(entry.text, node.type) } : entry];
  }
  if (entry.type === "step_start") return [];
  // Said of the call: else an approval would read as the call itself.
  const text = entry.type === "input_received" ? `about ${node?.name}: ${entry.text}` : entry.text;
  return [{ ...entry, path: agent, text }];
}

/** Returns the type alone of "Find food agent node, again: it was cut off", and that: the name stands beside it. */
function startText(text: string, type: string): string {
  return type + (/, again: .*$/.exec(text)?.[0] ?? "");
}
