import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { type Bar, Timeline, type TimelineRow } from "./Timeline";

function row(path: string, ...bars: Bar[]): TimelineRow {
  return { path, name: path, status: "completed", depth: 0, bars, label: "", isCritical: false };
}

test("a long time in which a step only waits for a person is narrow, if idle times are squeezed", () => {
  const rows = [
    row("draft", { kind: "work", status: "completed", from: 0, to: 10 }),
    row("ask", { kind: "wait", status: "completed", from: 10, to: 910 }),
    row("send", { kind: "work", status: "completed", from: 910, to: 912 }),
  ];
  const choice = { now: null, selectedPath: null, onSelect: () => {}, onFold: () => {} };
  const { rerender } = render(<Timeline rows={rows} squeeze {...choice} />);
  expect(screen.getByTitle("Nothing ran for 15:00").style.width).toBe("3.85%");
  rerender(<Timeline rows={rows} squeeze={false} {...choice} />);
  expect(screen.queryByTitle(/Nothing ran/)).toBeNull();
});
