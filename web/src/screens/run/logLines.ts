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
  if (agent === null) return [entry];
  return entry.type === "step_start" ? [] : [{ ...entry, path: agent }];
}
