import { expect, test } from "vitest";
import type { RevisionSummary } from "@/api/types";
import { revisionsInBar } from "./RevisionBar";

const START = Date.parse("2026-11-01T12:00:00Z");

/** Revisions with an author and a minute each, newest first as the API lists them. */
function revisions(...made: [author: RevisionSummary["author"], minute: number][]) {
  return made
    .map(([author, minute], index) => ({
      revision: index + 1,
      author,
      created_at: new Date(START + minute * 60_000).toISOString(),
      created_by: null,
    }))
    .toReversed() as unknown as RevisionSummary[];
}

const shown = (all: RevisionSummary[], compared: number[]) =>
  revisionsInBar(all, compared).map(({ revision }) => revision);

test("twelve revisions of three minutes are one, beside the one that is compared", () => {
  const typed = Array.from({ length: 12 }, (_, index) => ["person", 1 + index / 4] as const);
  const all = revisions(["planner", 0], ...typed.map((each): [...typeof each] => [...each]));
  expect(shown(all, [13, 12])).toEqual([13, 12, 1]);
});

test("another author or a long pause begins anew, and no more than four are there", () => {
  const all = revisions(
    ["planner", 0],
    ["person", 1],
    ["api", 2],
    ["person", 3],
    ["person", 4],
    ["person", 40],
  );
  expect(shown(all, [6, 5])).toEqual([6, 5, 3, 2]);
});

test("where all have room all are there", () => {
  const all = revisions(["person", 0], ["person", 1], ["person", 2], ["person", 3]);
  expect(shown(all, [4])).toEqual([4, 3, 2, 1]);
});
