import { expect, test } from "vitest";
import { branchTo, countBranches, newestBelow, placeAmongSiblings } from "@/stream/chat/tree";

/** A question, two answers, and a talk that goes on below the second. */
const MESSAGES = [
  { message_id: "q", parent_id: null, siblings: ["q"] },
  { message_id: "a1", parent_id: "q", siblings: ["a1", "a2"] },
  { message_id: "a2", parent_id: "q", siblings: ["a1", "a2"] },
  { message_id: "q2", parent_id: "a2", siblings: ["q2"] },
];

test("a branch leads from the first message to the head", () => {
  const ids = (head: string | null) => branchTo(MESSAGES, head).map((each) => each.message_id);
  expect(ids("q2")).toEqual(["q", "a2", "q2"]);
  expect(ids("a1")).toEqual(["q", "a1"]);
  expect(ids(null)).toEqual([]);
});

test("another sibling is shown with what follows it", () => {
  expect(newestBelow(MESSAGES, "a2")).toBe("q2");
  expect(newestBelow(MESSAGES, "a1")).toBe("a1");
});

test("a message knows its place among its siblings", () => {
  expect(MESSAGES.slice(1, 3).map(placeAmongSiblings)).toEqual([
    { place: 1, count: 2, previous: null, next: "a2" },
    { place: 2, count: 2, previous: "a1", next: null },
  ]);
});

test("a branch ends where nothing follows", () => {
  expect(countBranches(MESSAGES)).toBe(2);
});
