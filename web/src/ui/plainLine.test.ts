import { expect, test } from "vitest";
import { plainLine } from "./plainLine";

test.each([
  ["# Title\n\nAll of it is **done**.", "Title All of it is done."],
  ["- one\n- `two`\n\n> *three*, _four_", "one two three, four"],
  ["a snake_case_name and 2 * 3 * 4", "a snake_case_name and 2 * 3 * 4"],
])("%j is %j", (markdown, line) => {
  expect(plainLine(markdown)).toBe(line);
});
