import { expect, test } from "vitest";
import type { PortResponse } from "@/api/types";
import { drawnPorts, edgeHandle, findPort, handleId, portLookup, withWiredPorts } from "./ports";

const port = (name: string, fields: Partial<PortResponse> = {}): PortResponse => ({
  name,
  type: "any",
  label: "",
  channel: "flow",
  multiple: false,
  required: false,
  side: "left",
  color: "",
  shape: "circle",
  ...fields,
});
const names = (ports: PortResponse[]) => ports.map(handleId);

test("settings have no sockets until something is wired to them", () => {
  const ports = {
    inputs: [
      port("input"),
      port("model", { type: "model", channel: "link", side: "bottom" }),
      port("temperature", { type: "number", side: "bottom" }),
    ],
    outputs: [
      port("output", { side: "right" }),
      port("output", { side: "right", channel: "link" }),
    ],
  };
  const bare = drawnPorts(ports, new Set());
  expect(names(bare.inputs)).toEqual(["flow:input"]);
  expect(names(bare.sides)).toEqual(["link:model"]);
  expect(names(bare.outputs)).toEqual(["flow:output"]);
  const wired = drawnPorts(ports, new Set(["flow:temperature", "link:output"]));
  expect(names(wired.sides)).toEqual(["link:model", "flow:temperature"]);
  expect(names(wired.outputs)).toEqual(["flow:output", "link:output"]);
});

test("a handle that only an edge names is drawn too", () => {
  const ports = { inputs: [port("input")], outputs: [port("send", { side: "right" })] };
  const all = withWiredPorts(ports, new Set(["flow:input", "link:tool"]), new Set(["flow:sent"]));
  expect(names(all.inputs)).toEqual(["flow:input", "link:tool"]);
  expect(names(all.outputs)).toEqual(["flow:send", "flow:sent"]);
  const drawn = drawnPorts(all, new Set(["flow:sent", "link:tool"]));
  expect(names(drawn.inputs)).toContain("link:tool");
  expect(names(drawn.outputs)).toContain("flow:sent");
});

test("patterns are no ports, and what others link is at the top", () => {
  const ports = {
    inputs: [],
    outputs: [
      port("case-{i}", { side: "right" }),
      port("output", { side: "top", channel: "link" }),
    ],
  };
  const drawn = drawnPorts(ports, new Set());
  expect(names(drawn.outputs)).toEqual([]);
  expect(names(drawn.tops)).toEqual(["link:output"]);
});

test("the check knows the ports of a configured node better than its type", () => {
  const node = { id: "ask", type: "approval" };
  const checked = { inputs: [], outputs: [port("approve", { side: "right" })] };
  const check = {
    valid: true,
    diagnostics: [],
    graph: null,
    ports: { ask: checked },
    forecast: null,
  };
  expect(portLookup(undefined, check)(node)).toBe(checked);
  expect(portLookup(undefined, undefined)(node)).toEqual({ inputs: [], outputs: [] });
  expect(findPort(node, "source", "flow:approve", () => checked)?.port.name).toBe("approve");
});

test("an edge ends at the handle of its channel", () => {
  const edge = { source: "a", target: "b", targetHandle: "model", data: { channel: "link" } };
  expect(edgeHandle(edge, "source")).toBe("link:output");
  expect(edgeHandle(edge, "target")).toBe("link:model");
});
