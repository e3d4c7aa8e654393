import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { type Bar, type ChangeMark, Timeline, type TimelineRow } from "./Timeline";

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

test("a change of the plan has a mark at its time, which shows it and takes it away again", () => {
  const rows = [row("a", { kind: "work", status: "completed", from: 0, to: 10 })];
  const changes = [
    { number: 1, at: 5, title: "Change 1, 10:00:05: also cover costs" },
    { number: 2, at: 5, title: "Change 2, 10:00:05" },
  ];
  const asked: (number | null)[] = [];
  const choice = { selectedPath: null, onSelect: () => {}, onFold: () => {} };
  const timeline = (moment: number | null) => (
    <Timeline
      {...{ rows, changes, moment, ...choice }}
      now={null}
      squeeze
      onMoment={(next) => asked.push(next)}
    />
  );
  const { rerender } = render(timeline(null));
  const marks = within(screen.getByRole("group", { name: "Changes of the plan" }));
  const [first, second] = marks.getAllByRole<HTMLButtonElement>("button");
  expect(first?.getAttribute("aria-label")).toBe("Change 1, 10:00:05: also cover costs");
  expect(first?.style.left).toBe("calc(50.00%)");
  expect(second?.style.left).toContain("26px");
  fireEvent.click(marks.getByRole("button", { name: /Change 1/ }));
  rerender(timeline(1));
  expect(first?.getAttribute("aria-pressed")).toBe("true");
  fireEvent.click(marks.getByRole("button", { name: /Change 1/ }));
  expect(asked).toEqual([1, null]);
});

test("a change that was refused has a mark with its reason, which opens the changes in words", () => {
  const rows = [row("a", { kind: "work", status: "completed", from: 0, to: 10 })];
  const refusal = {
    number: null,
    at: 8,
    title: "Not changed, 10:00:08: node 'post' has the type 'http_tool'",
  };
  const told: string[] = [];
  const timeline = (...changes: ChangeMark[]) => (
    <Timeline
      {...{ rows, changes, selectedPath: null, onSelect: () => {}, onFold: () => {} }}
      now={null}
      squeeze
      onMoment={(moment) => told.push(`moment ${moment}`)}
      onRefusal={() => told.push("refusal")}
    />
  );
  const { rerender } = render(timeline(refusal));
  const mark = screen.getByRole("button", { name: refusal.title });
  expect(mark.title).toBe(refusal.title);
  expect(mark.hasAttribute("aria-pressed")).toBe(false);
  expect(screen.getByText("Plan not changed")).toBeTruthy();
  fireEvent.click(mark);
  rerender(timeline({ number: 1, at: 5, title: "Change 1, 10:00:05" }, refusal));
  expect(screen.getByText("Plan changed")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: /Change 1/ }));
  expect(told).toEqual(["refusal", "moment 1"]);
});
