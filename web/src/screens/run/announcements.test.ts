import { expect, test } from "vitest";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState } from "@/stream/runState";
import { announcementOf } from "./announcements";

function announcements(name: string): string[] {
  const run = goldenRuns().find((each) => each.name.startsWith(name));
  if (!run) throw new Error(`no recorded run ${name}`);
  let state = applyEvents(newRunState(run.events[0]?.execution_id ?? ""), run.events.slice(0, 1));
  const said: string[] = [];
  for (const event of run.events.slice(1)) {
    const next = applyEvents(state, [event]);
    const words = announcementOf(state, next);
    if (words) said.push(words);
    state = next;
  }
  return said;
}

test("a chain says the end of each wave and of the run, and nothing of tokens", () => {
  const said = announcements("chain");
  expect(said.at(-1)).toBe("The run is done.");
  expect(said.slice(0, -1).every((words) => /^Wave \d+ of \d+ is done\.$/.test(words))).toBe(true);
});

test("a question and a failure are said", () => {
  expect(announcements("approvals").some((words) => words.endsWith("waits for your answer."))).toBe(
    true,
  );
  expect(announcements("failure_stops").some((words) => words.endsWith(" failed."))).toBe(true);
});

test("a run that another process goes on with says so", () => {
  expect(announcements("cut_off_inside_nodes")).toContain("The run goes on in another process.");
});

test("a change that a model writes is said, and that it is not made", () => {
  const said = announcements("changes_after_failures");
  expect(said.some((words) => words.includes("A model writes a change of the plan."))).toBe(true);
  expect(announcements("changes_that_a_person_decides")).toContain(
    "The run waits for your answer.",
  );
});

test("a change of the plan is said", () => {
  const said = announcements("changes_while_it_waits");
  expect(said.filter((words) => words === "The plan of the run was changed.")).toHaveLength(2);
});
