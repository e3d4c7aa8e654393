import { fireEvent, render, screen, within } from "@testing-library/react";
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
