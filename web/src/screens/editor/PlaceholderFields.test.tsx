import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { PlaceholderFields } from "./PlaceholderFields";

const PORT = { name: "input", channel: "flow", type: "any", label: "", multiple: true };
const TYPES = ["placeholder", "text"].map((name) => ({
  node_type: name,
  summary: `A ${name}.`,
  inputs: [PORT],
  outputs: [],
}));
const NODE = {
  id: "p",
  type: "placeholder",
  name: "Send",
  data: { kind: "slack", parameters: { text: "={{ $json.a }}" }, code: "return 1" },
};
const GRAPH: GraphDocument = { nodes: [NODE], edges: [] };
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({ "GET /api/node-types": { node_types: TYPES, socket_types: [] } });
});

afterEach(() => api.close());

test("a placeholder shows what the step was, and a chosen type takes its place", async () => {
  const changes: GraphDocument[] = [];
  const element = (
    <PlaceholderFields graph={GRAPH} node={NODE} onChange={(graph) => changes.push(graph)} />
  );
  renderRoutes([{ path: "/", element }]);
  const settings = screen.getByLabelText<HTMLTextAreaElement>("Its settings there");
  expect(settings.value).toContain("={{ $json.a }}");
  expect(settings.readOnly).toBe(true);
  expect(screen.getByLabelText<HTMLTextAreaElement>("Its code").readOnly).toBe(true);
  expect(screen.getByDisplayValue("slack")).toBeTruthy();
  await waitFor(() => screen.getByText("text: A text."));
  expect(screen.queryByText("placeholder: A placeholder.")).toBeNull();
  fireEvent.change(screen.getByLabelText("Replace with…"), { target: { value: "text" } });
  expect(changes).toEqual([{ nodes: [{ id: "p", type: "text", name: "Send" }], edges: [] }]);
});
