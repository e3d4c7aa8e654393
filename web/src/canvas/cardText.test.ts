import { expect, test } from "vitest";
import { cardText } from "./cardText";

test.each([
  [{ description: "Find food.", data: { userPrompt: "Other" } }, "Find food."],
  [{ description: " ", data: { userPrompt: "Answer {{ input }}" } }, "Answer {{ input }}"],
  [{ description: "{% raw %}{{ a }}{% endraw %}" }, "{{ a }}"],
  [{ data: { text: "", url: "https://example.org" } }, "https://example.org"],
  [{ data: { text: 3 } }, ""],
  [{}, ""],
])("the card of %j says %j", (fields, text) => {
  expect(cardText({ id: "a", type: "agent", ...fields })).toBe(text);
});
