import { expect, test } from "vitest";
import { plainLine } from "./plainLine";

test.each([
  ["# Title\n\nAll of it is **done**.", "Title All of it is done."],
  ["- one\n- `two`\n\n> *three*, _four_", "one two three, four"],
  ["**bold**, __too__ and **bold _in_ it** and **cut off", "bold, too and bold in it and cut off"],
  ["2**10 and 3**2, a.__init__.b", "2**10 and 3**2, a.__init__.b"],
  ["so `2**10` or\n```python\nx = __name__ * **k\n```", "so 2**10 or x = __name__ * **k"],
  ['{"__typename": "Order",\n "sum": "2**10"', '{"__typename": "Order", "sum": "2**10"'],
  ['[1, "*a*", "- b"]', '[1, "*a*", "- b"]'],
  ["[*a* link](x)", "[*a* link](x)"],
  ["a snake_case_name and 2 * 3 * 4", "a snake_case_name and 2 * 3 * 4"],
])("%j is %j", (markdown, line) => {
  expect(plainLine(markdown)).toBe(line);
});
