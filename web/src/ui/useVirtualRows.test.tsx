import { act, fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { useVirtualRows } from "@/ui/useVirtualRows";

const ROW_HEIGHT = 20;

function List({ count }: { count: number }) {
  const { list, rows, rest } = useVirtualRows<HTMLOListElement>(count, ROW_HEIGHT);
  return (
    <ol ref={list} data-rest={rest}>
      {rows.map(({ index, gap }) => (
        <li key={index} data-row={index} data-gap={gap}>
          <button type="button">{index}</button>
        </li>
      ))}
    </ol>
  );
}

function drawn() {
  const rows = screen.queryAllByRole("listitem");
  const gaps = rows.map((row) => Number(row.dataset.gap));
  const rest = Number(screen.getByRole("list").dataset.rest);
  const height = gaps.reduce((sum, gap) => sum + gap, rest) + rows.length * ROW_HEIGHT;
  return { indices: rows.map((row) => Number(row.dataset.row)), height };
}

/** As a browser that has scrolled the list, whichever element it is in. */
function scrollTo(y: number) {
  const list = screen.getByRole("list");
  list.getBoundingClientRect = () => new DOMRect(0, -y, 300, 0);
  fireEvent.scroll(list.parentElement as Element);
}

test.each([0, 1, 100])("a list of %i rows is drawn whole", (count) => {
  render(<List count={count} />);
  expect(drawn()).toEqual({ indices: [...Array(count).keys()], height: count * ROW_HEIGHT });
});

test.each([101, 2_000, 50_000])(
  "of %i rows few are drawn, and the list keeps its height",
  (count) => {
    render(<List count={count} />);
    for (const share of [0, 0.3, 0.77, 1]) {
      const y = share * count * ROW_HEIGHT;
      scrollTo(y);
      const { indices, height } = drawn();
      expect(indices.length).toBeLessThan(window.innerHeight / ROW_HEIGHT + 80);
      expect(height).toBe(count * ROW_HEIGHT);
      for (let row = y / ROW_HEIGHT; row < (y + window.innerHeight) / ROW_HEIGHT; row += 1) {
        if (row < count) expect(indices).toContain(Math.floor(row));
      }
    }
  },
);

test("the row with the focus stays, with those that Tab leads to", () => {
  render(<List count={2_000} />);
  const button = screen.getByRole("button", { name: "7" });
  fireEvent.focusIn(button);
  scrollTo(30_000);
  expect(drawn().indices.slice(0, 4)).toEqual([6, 7, 8, 1480]);
  expect(screen.getByRole("button", { name: "7" })).toBe(button);
  expect(drawn().height).toBe(2_000 * ROW_HEIGHT);
  fireEvent.focusOut(button);
  expect(screen.queryByRole("button", { name: "7" })).toBeNull();
});

test("a list that has become shorter is drawn at its end", () => {
  const { rerender } = render(<List count={2_000} />);
  scrollTo(39_000);
  rerender(<List count={120} />);
  expect(drawn().indices.at(-1)).toBe(119);
  expect(drawn().height).toBe(120 * ROW_HEIGHT);
});

test("rows whose heights differ by a pixel do not make the range waver", () => {
  render(<List count={2_000} />);
  const { getBoundingClientRect } = Element.prototype;
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
    const row = this instanceof HTMLElement ? this.dataset.row : undefined;
    if (row === undefined) return getBoundingClientRect.call(this);
    return new DOMRect(0, 0, 300, Number(row) === 0 ? ROW_HEIGHT : ROW_HEIGHT + 1);
  });
  for (let y = 0; y < 40_000; y += 397) scrollTo(y);
  expect(drawn().height).toBe(2_000 * ROW_HEIGHT);
});

test("to be drawn again has nothing measured: the browser would lay out the page once more", () => {
  const { rerender } = render(<List count={2_000} />);
  const measure = vi.spyOn(Element.prototype, "getBoundingClientRect");
  for (let more = 0; more < 10; more += 1) rerender(<List count={2_000 + more} />);
  expect(measure).not.toHaveBeenCalled();
});

test("a list that is moved by what stands around it draws what is in the window then", () => {
  const laidOut = new Set<() => void>();
  vi.stubGlobal(
    "ResizeObserver",
    class {
      private readonly tell: () => void;
      constructor(tell: () => void) {
        this.tell = tell;
      }
      observe() {
        laidOut.add(this.tell);
      }
      disconnect() {}
    },
  );
  const { rerender } = render(<List count={2_000} />);
  screen.getByRole("list").getBoundingClientRect = () => new DOMRect(0, -20_000, 300, 0);
  rerender(<List count={2_000} />);
  act(() => {
    for (const tell of laidOut) tell();
  });
  expect(drawn().indices).toContain(1_000);
  vi.unstubAllGlobals();
});
