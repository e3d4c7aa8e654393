import type { NodeDifference } from "@/api/types";
import { numberOf } from "@/json";
import { ENDED_NODE, type NodeState, type RunState } from "@/stream/runState";
import type { Span } from "./timeScale";

/** Seconds that steps took in an earlier run, by path. */
export type EarlierTimes = ReadonlyMap<string, number>;

export const NO_TIMES: EarlierTimes = new Map();

/** Returns how long the steps of an earlier run (`a`) took that are the same in this one (`b`). */
export function earlierTimes(differences: readonly NodeDifference[]): EarlierTimes {
  return new Map(
    differences.flatMap(({ path, status, duration_s, written }): [string, number][] => {
      const seconds = status[0] === "completed" ? numberOf(duration_s[0]) : null;
      return seconds !== null && !written?.length ? [[path, seconds]] : [];
    }),
  );
}

/** Returns when the steps that have not started are expected to run, by id.
 *
 * A step starts when all before it have ended, and takes as long as in the earlier run. Where one of
 * these is not known, as behind a step that waits for a person, there is no forecast. Times are in
 * seconds since `zero`; `zero` and `now` are in ms. */
export function forecastSpans(
  run: RunState,
  earlier: EarlierTimes,
  zero: number,
  now: number,
): Map<string, Span> {
  const spans = new Map<string, Span>();
  if (run.status !== "executing" || earlier.size === 0) return spans;
  const seconds = (time: string | null) => (time ? (Date.parse(time) - zero) / 1000 : 0);
  const present = (now - zero) / 1000;
  const parents = parentsOf(run);
  const ends = new Map<string, number | null>();
  const endOf = (id: string): number | null => {
    const known = ends.get(id);
    if (known !== undefined) return known;
    ends.set(id, null); // in a cycle nothing is known
    const node = run.nodes.get(id);
    const end = node ? expectedEnd(node) : null;
    ends.set(id, end);
    return end;
  };
  const startOf = (node: NodeState): number | null => {
    const before = (parents.get(node.id) ?? []).map(endOf);
    return before.reduce(
      (from, end) => (from === null || end === null ? null : Math.max(from, end)),
      present,
    );
  };
  const expectedEnd = (node: NodeState): number | null => {
    if (ENDED_NODE.has(node.status)) return seconds(node.endedAt);
    const takes = node.type === "approval" ? undefined : earlier.get(node.path);
    if (takes === undefined || node.status === "waiting") return null;
    if (node.startedAt) return Math.max(present, seconds(node.startedAt) + takes);
    const from = startOf(node);
    if (from === null) return null;
    spans.set(node.id, { from, to: from + takes });
    return from + takes;
  };
  for (const node of run.nodes.values()) if (node.prefix === "") endOf(node.id);
  return spans;
}

function parentsOf(run: RunState): Map<string, string[]> {
  const parents = new Map<string, string[]>();
  for (const { source, target, data } of run.graph?.edges ?? []) {
    if (data.channel !== "flow") continue;
    const group = parents.get(target);
    if (group) group.push(source);
    else parents.set(target, [source]);
  }
  return parents;
}
