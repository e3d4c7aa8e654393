import { replaceEqualDeep } from "@tanstack/react-query";
import type { GraphDocument, NodeDocument } from "@/api/types";
import { indexOfGraph } from "@/stream/graphIndex";
import type { Change } from "./ChangeMark";

/** A step of a plan before or after a change. */
export type PlanStep = { node: NodeDocument; change: Change };

/** Returns the steps of both graphs: those of the one before as they become, then the new ones. */
export function planSteps(before: GraphDocument, after: GraphDocument): PlanStep[] {
  const [old, now] = [indexOfGraph(before).nodes, indexOfGraph(after).nodes];
  return [
    ...before.nodes.map((node): PlanStep => {
      const next = now.get(node.id);
      if (next === undefined) return { node, change: "only_a" };
      return { node: next, change: isSame(node, next) ? "same" : "changed" };
    }),
    ...after.nodes
      .filter(({ id }) => !old.has(id))
      .map((node): PlanStep => ({ node, change: "only_b" })),
  ];
}

/** Returns whether a step is the same, wherever it stands. */
function isSame(a: NodeDocument, b: NodeDocument): boolean {
  if (a === b) return true;
  const before = { ...a, ui: null };
  return replaceEqualDeep(before, { ...b, ui: null }) === before;
}

/** "1 new, 2 changed, 1 dropped"; "" where all steps are kept. */
export function planChangeWords(steps: readonly Pick<PlanStep, "change">[]): string {
  return (["only_b", "changed", "only_a"] as const)
    .map((change) => [steps.filter((each) => each.change === change).length, PLAN_WORDS[change]])
    .flatMap(([count, word]) => (count ? [`${count} ${word}`] : []))
    .join(", ");
}

/** What becomes of a step; one that is kept is plain. */
export const PLAN_WORDS: Record<Change, string> = {
  same: "",
  changed: "changed",
  only_a: "dropped",
  only_b: "new",
};
