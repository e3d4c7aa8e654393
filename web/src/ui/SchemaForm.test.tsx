import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, test } from "vitest";
import { type FormValue, SchemaForm } from "./SchemaForm";
import type { JsonSchema } from "./schema";
import { TooltipProvider } from "./Tooltip";

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

type FormProps = {
  initial: FormValue;
  errors?: Record<string, string>;
  values: FormValue[];
  schema?: JsonSchema;
  onBroken?: (name: string, isBroken: boolean) => void;
};

function Form({ initial, errors, values, schema = SCHEMA, onBroken }: FormProps) {
  const [value, setValue] = useState(initial);
  const change = (next: FormValue) => {
    values.push(next);
    setValue(next);
  };
  return (
    <TooltipProvider>
      <SchemaForm {...{ schema, value, errors, onBroken }} onChange={change} />
    </TooltipProvider>
  );
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

const SHOP: JsonSchema = {
  type: "object",
  $defs: {
    Item: {
      type: "object",
      properties: { sku: { type: "string" }, count: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["sku"],
    },
  },
  properties: {
    to: {
      type: "object",
      properties: { city: { type: "string" }, zip: { type: "integer" } },
      required: ["city"],
    },
    gift: { anyOf: [{ $ref: "#/$defs/Item" }, { type: "null" }], default: null },
    items: { type: "array", items: { $ref: "#/$defs/Item" } },
    tags: { type: "array", items: { type: "string" } },
    day: { type: "string", format: "date" },
  },
  required: ["to"],
};
const press = (name: string) => fireEvent.click(screen.getByRole("button", { name }));

test("objects and lists inside are fields of their own", () => {
  const values: FormValue[] = [];
  render(<Form schema={SHOP} initial={{ kept: 1 }} values={values} />);
  type("City", "Ulm");
  press("Add to tags");
  type("Tags 1", "new");
  press("Add to items");
  type("Sku", "a");
  type("Count", "2");
  press("Add to items");
  press("Remove items 2");
  press("Add gift");
  type("Day", "2026-02-03");
  expect(values.at(-1)).toEqual({
    kept: 1,
    to: { city: "Ulm" },
    tags: ["new"],
    items: [{ sku: "a", count: 2 }],
    gift: {},
    day: "2026-02-03",
  });
  press("Remove gift");
  expect(values.at(-1)).not.toHaveProperty("gift");
});

test("what is wrong stands at the field inside, and what is broken there is told by its path", () => {
  const broken: string[] = [];
  const errors = { "items/0/count": "has to be at most 9", items: "too few", "tags/3": "gone" };
  render(
    <Form
      schema={SHOP}
      initial={{ items: [{ sku: "a", count: 12 }] }}
      errors={errors}
      values={[]}
      onBroken={(name, isBroken) => isBroken && broken.push(name)}
    />,
  );
  expect(screen.getByLabelText("Count").getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByText("has to be at most 9")).toBeTruthy();
  expect(screen.getByText("too few")).toBeTruthy();
  type("Count", "1x");
  expect(broken).toEqual(["items/0/count"]);
});

test("a value that is not of its kind is edited as JSON or text, and shown as it is", () => {
  render(<Form schema={SHOP} initial={{ to: "{{ input }}", items: 3, day: "soon" }} values={[]} />);
  const textOf = (label: string) => screen.getByLabelText<HTMLInputElement>(label).value;
  expect([textOf("To"), textOf("Items"), textOf("Day")]).toEqual(['"{{ input }}"', "3", "soon"]);
});

const MAP: JsonSchema = {
  type: "object",
  properties: {
    headers: {
      type: "object",
      additionalProperties: {
        anyOf: [{ type: "string" }, { type: "integer" }, { type: "boolean" }],
      },
    },
    open: { type: "object", additionalProperties: true },
    query: {
      anyOf: [
        { type: "object", additionalProperties: { type: "string" } },
        { type: "string", pattern: "\\{[{%]" },
      ],
      template: true,
    },
    count: { anyOf: [{ type: "number" }, { type: "string", pattern: "\\{[{%]" }], template: true },
    case: {},
    cases: { type: "array", items: {} },
  },
};

function showMap(initial: FormValue): FormValue[] {
  const values: FormValue[] = [];
  render(<Form initial={initial} values={values} schema={MAP} />);
  return values;
}

test("an object with fields of any names is a list of names and values", () => {
  const values = showMap({ headers: { Accept: "text/html" } });
  type("Value 1", "5");
  expect(values.at(-1)).toEqual({ headers: { Accept: 5 } });
  fireEvent.click(screen.getByRole("button", { name: "Add to headers" }));
  expect(values).toHaveLength(1);
  type("Name 2", "X-Id");
  type("Value 2", "seven");
  expect(values.at(-1)).toEqual({ headers: { Accept: 5, "X-Id": "seven" } });
  type("Name 2", "Accept");
  expect(screen.getByText("This name stands twice.")).toBeTruthy();
  type("Name 2", "X-Id");
  fireEvent.click(screen.getByRole("button", { name: "Remove Accept" }));
  fireEvent.click(screen.getByRole("button", { name: "Remove X-Id" }));
  expect(values.at(-1)).toEqual({});
});

test("any value is typed as text or as JSON; one that is open stays JSON", () => {
  const values = showMap({ cases: ["5", 5] });
  expect(screen.getByLabelText("Cases 1")).toHaveProperty("value", '"5"');
  type("Cases 2", "red");
  expect(values.at(-1)).toEqual({ cases: ["5", "red"] });
  type("Case", '{"a": ');
  expect(screen.getByText(/^This is not JSON/)).toBeTruthy();
  expect(values).toHaveLength(1);
  type("Case", '{"a": 1}');
  expect(values.at(-1)).toEqual({ cases: ["5", "red"], case: { a: 1 } });
  type("Open", '{"b": 2}');
  expect(values.at(-1)).toMatchObject({ open: { b: 2 } });
});

test("an expression in the place of a number or of a list of fields is shown as it is", () => {
  const values = showMap({ query: "{{ input }}", count: 3 });
  expect(screen.getByLabelText("Query")).toHaveProperty("value", "{{ input }}");
  type("Count", "{{ input.count }}");
  expect(values.at(-1)).toMatchObject({ count: "{{ input.count }}" });
  type("Query", "");
  fireEvent.click(screen.getByRole("button", { name: "Add to query" }));
  type("Name 1", "q");
  type("Value 1", "5");
  expect(values.at(-1)).toMatchObject({ query: { q: "5" } });
});
