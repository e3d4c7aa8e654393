import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, test } from "vitest";
import { type FormValue, SchemaForm } from "./SchemaForm";
import type { JsonSchema } from "./schema";

const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    title: { type: "string", description: "What it is called." },
    maxTokens: { anyOf: [{ type: "integer" }, { type: "null" }] },
    level: { enum: ["low", "high"] },
    strict: { type: "boolean", default: true },
    data: { type: "object" },
  },
  required: ["title"],
};

type FormProps = { initial: FormValue; errors?: Record<string, string>; values: FormValue[] };

function Form({ initial, errors, values }: FormProps) {
  const [value, setValue] = useState(initial);
  const change = (next: FormValue) => {
    values.push(next);
    setValue(next);
  };
  return <SchemaForm schema={SCHEMA} value={value} onChange={change} errors={errors ?? {}} />;
}

/** Shows a form and returns the list of its values, which grows with each change. */
function show(initial: FormValue, errors?: Record<string, string>): FormValue[] {
  const values: FormValue[] = [];
  render(<Form initial={initial} values={values} {...(errors && { errors })} />);
  return values;
}

const type = (label: string, text: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value: text } });

test("each field changes its own value", () => {
  const values = show({ title: "Old", kept: 1 });
  type("Title", "New");
  type("Max tokens", "220");
  type("Level", '"high"');
  fireEvent.click(screen.getByLabelText("Strict"));
  type("Data", '{"a": 1}');
  expect(values.at(-1)).toEqual({
    title: "New",
    kept: 1,
    maxTokens: 220,
    level: "high",
    strict: false,
    data: { a: 1 },
  });
});

test("a field that is emptied is left out", () => {
  const values = show({ title: "Old", maxTokens: 220 });
  type("Max tokens", "");
  expect(values).toEqual([{ title: "Old" }]);
});

test("what is not a number is said, and the value is kept", () => {
  const values = show({ maxTokens: 220 });
  type("Max tokens", "22x");
  expect(screen.getByText('"22x" is not a number.')).toBeTruthy();
  expect(values).toEqual([]);
});

test("what is not JSON is said, and stays to be mended", () => {
  show({});
  type("Data", "{");
  expect(screen.getByText(/^This is not JSON:/)).toBeTruthy();
  expect(screen.getByLabelText<HTMLTextAreaElement>("Data").value).toBe("{");
});

test("an error of the API stands below its field", () => {
  show({ title: "" }, { title: "a title is needed" });
  expect(screen.getByLabelText("Title").getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByText("a title is needed")).toBeTruthy();
});
