import { expect, test } from "vitest";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState } from "@/stream/runState";
import { stateOfSnapshot } from "@/stream/snapshot";
import { changeTitle, graphsAt, momentWords, statusAt } from "./planMoments";
import { changeMarks } from "./timelineRows";

const RECORDED = goldenRuns().find((each) => each.name.startsWith("changes_while_it_waits"));
const RUN = applyEvents(newRunState("x"), RECORDED?.events ?? []);

test("a moment has the graph before and after its change; the plan as it was made is the same twice", () => {
  const ids = [0, 1, 2].map((moment) => {
    const graphs = graphsAt(RUN, moment);
    return [graphs?.before, graphs?.after].map((graph) =>
      graph?.nodes.map(({ id }) => id).join(""),
    );
  });
  expect(ids).toEqual([
    ["aqfgbcx", "aqfgbcx"],
    ["aqfgbcx", "aqgbccostslate"],
    ["aqgbccostslate", "aqgbccosts"],
  ]);
});

test.each([-1, 3, 1.5, Number.NaN])("%s is no moment", (moment) => {
  expect(graphsAt(RUN, moment)).toBeNull();
});

test("a snapshot knows no earlier graph", () => {
  if (RECORDED === undefined) throw new Error("the recorded run is missing");
  const run = stateOfSnapshot(RECORDED.state);
  expect(run.changes).toHaveLength(2);
  expect(graphsAt(run, 1)).toBeNull();
});

test("a moment is named by its change and what that did", () => {
  expect(momentWords(RUN, null)).toBe("now");
  expect(momentWords(RUN, 0)).toBe("as made");
  expect(momentWords(RUN, 1)).toMatch(/^change 1 of 2, .*: 2 new, 1 changed, 2 dropped$/);
  expect(momentWords(RUN, 2)).toMatch(/^change 2 of 2, .*: 1 dropped$/);
  const [change] = RUN.changes;
  expect(change && changeTitle(change)).toMatch(
    /^Change 1, .*, by a local user: also cover costs$/,
  );
});

test("a step that was dropped has the status that it had then, one that never began has none", () => {
  expect(["a", "f", "x", "late"].map((id) => statusAt(RUN, id))).toEqual([
    "completed",
    "failed",
    undefined,
    undefined,
  ]);
});

test("the marks of the timeline are the changes and those that were refused, by their time", () => {
  const recorded = goldenRuns().find((each) => each.name.startsWith("changes_after_failures"));
  const run = applyEvents(newRunState("x"), recorded?.events ?? []);
  expect(changeMarks(run)).toEqual([
    { number: 1, at: 11, title: expect.stringMatching(/^Change 1, .*: goes another way$/) },
    { number: null, at: 16, title: expect.stringMatching(/^Not changed, .*: nothing can help$/) },
  ]);
});
