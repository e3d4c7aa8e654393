import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { Text } from "./Text";

test("JSON has a line for each value, and its numbers as they came", async () => {
  render(<Text text={'{"order":3544790567247868102,"price":1.0,"lines":[{"sku":"pot"}]}'} />);
  // Not the text as it stands until the code of Markdown is loaded.
  const code = await screen.findByText(/"order"/, { selector: "pre *" });
  expect(code.closest("pre")?.textContent).toBe(
    [
      "{",
      '  "order": 3544790567247868102,',
      '  "price": 1.0,',
      '  "lines": [',
      "    {",
      '      "sku": "pot"',
      "    }",
      "  ]",
      "}\n",
    ].join("\n"),
  );
});

test("what only begins as JSON does is Markdown", async () => {
  render(<Text text="[Lisbon] is **old**." />);
  expect((await screen.findByText("old")).tagName).toBe("STRONG");
});
