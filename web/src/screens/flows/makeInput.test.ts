import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { inputNames, nameFor, nameProblem, placesOf, withInput } from "./makeInput";

const graph: GraphDocument = {
  nodes: [
    { id: "food", type: "agent", name: "Food", description: "Find food in Lisbon, near Lisbona." },
    { id: "pack", type: "agent", name: "Pack", description: "Pack for 3 days" },
  ],
  edges: [],
};
const texts = { goal: "Plan 3 days in Lisbon for Ann; Lisbon only", graph };

test("equal words are found as whole words, in the goal and in tasks", () => {
  const found = placesOf(texts, "Lisbon").map(({ node, count }) => [node, count]);
  expect(found).toEqual([
    [null, 2],
    ["food", 1],
  ]);
  expect(placesOf(texts, "Lis")).toEqual([]);
  expect(placesOf(texts, " ")).toEqual([]);
  expect(placesOf({ ...texts, goal: "c++ (a.b)" }, "c++").map(({ node }) => node)).toEqual([null]);
});

test("an input takes the place of the words and is declared with them as its default", () => {
  const made = withInput(texts, { words: "Lisbon", name: "city", places: [null, "food"] });
  expect(made.goal).toBe("Plan 3 days in {{ city }} for Ann; {{ city }} only");
  expect(made.graph.nodes.map(({ description }) => description)).toEqual([
    undefined,
    "Find food in {{ city }}, near Lisbona.",
    "Pack for 3 days",
  ]);
  expect(made.graph.nodes[0]).toEqual({
    id: "inputs",
    type: "start",
    name: "Inputs",
    data: {
      schema: { type: "object", properties: { city: { type: "string", default: "Lisbon" } } },
    },
  });
});

test("a second input is a field of the same start, with the type of its words", () => {
  const once = withInput(texts, { words: "Lisbon", name: "city", places: [null, "food"] });
  const twice = withInput(once, { words: "3", name: "days", places: [null, "pack"] });
  expect(twice.goal).toBe("Plan {{ days }} days in {{ city }} for Ann; {{ city }} only");
  expect(inputNames(twice.graph)).toEqual(["city", "days"]);
  const [start] = twice.graph.nodes;
  expect(start?.data?.schema).toEqual({
    type: "object",
    properties: {
      city: { type: "string", default: "Lisbon" },
      days: { type: "integer", default: 3 },
    },
  });
  expect(twice.graph.nodes).toHaveLength(3);
});

test("only the chosen places change, and words in braces stay", () => {
  const goal = "Lisbon {{ Lisbon }} {% raw %}Lisbon{% endraw %}";
  const known = withInput({ goal: "x Rome", graph }, { words: "Rome", name: "a", places: [null] });
  const made = withInput(
    { goal, graph: known.graph },
    { words: "Lisbon", name: "city", places: [null] },
  );
  expect(made.goal).toBe("{{ city }} {{ Lisbon }} {% raw %}Lisbon{% endraw %}");
  expect(made.graph.nodes[1]?.description).toBe("Find food in Lisbon, near Lisbona.");
});

test("braces of a goal, which were plain text before the first input, stay so", () => {
  const made = withInput(
    { goal: "Explain {{ x }} and {% if %} to Ann", graph },
    { words: "Ann", name: "name", places: [null] },
  );
  expect(made.goal).toBe('Explain {{ "{{" }} x }} and {{ "{%" }} if %} to {{ name }}');
});

test("words that replacement patterns would read differently are taken as they are", () => {
  const made = withInput(
    { goal: "pay $& now", graph },
    { words: "$&", name: "sum", places: [null] },
  );
  expect(made.goal).toBe("pay {{ sum }} now");
});

test("a name is proposed by what the words are, and by what stands around them", () => {
  const name = (words: string, text: string, taken: string[] = []) => nameFor(words, text, taken);
  expect(name("Lisbon", "Plan three days in Lisbon")).toBe("city");
  expect(name("Lisbon", "Plan three days in Lisbon", ["city"])).toBe("city_2");
  expect(name("three", "Plan three days in Lisbon")).toBe("days");
  expect(name("30", "Write 30 lines")).toBe("lines");
  expect(name("Ann Lee", "A poem for Ann Lee")).toBe("name");
  expect(name("https://a.example", "Read https://a.example")).toBe("url");
  expect(name("a@b.example", "Write to a@b.example")).toBe("email");
  expect(name("2026-05-01", "On 2026-05-01")).toBe("date");
  expect(name("green tea", "Buy green tea")).toBe("green_tea");
  expect(name("日本", "日本")).toBe("topic");
});

test("a name that templates could not read is refused", () => {
  expect(nameProblem("city", [])).toBeUndefined();
  for (const name of ["", "2nd", "a b", "größe", "goal", "input"]) {
    expect(nameProblem(name, [])).toBeTruthy();
  }
  expect(nameProblem("city", ["city"])).toMatch(/already/);
});
