import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { FailureBox } from "./FailureBox";

afterEach(() => vi.unstubAllGlobals());

const ERROR = {
  code: "node-failed",
  message: "ValueError: no shop",
  hint: "raised at shop.py:3, in pay",
};

function copies(): string[] {
  const copied: string[] = [];
  const clipboard = { writeText: async (text: string) => void copied.push(text) };
  vi.stubGlobal("navigator", { clipboard });
  return copied;
}

test("a failure shows its message, the way out, its place and its traceback, and copies all of it", () => {
  const copied = copies();
  const where = { path: "each[0]/pay", attempt: 3 };
  render(<FailureBox error={ERROR} where={where} traceback={"Traceback:\n  in pay"} />);
  expect(screen.getByText(/no shop.*in pay/)).toBeTruthy();
  expect(screen.getByText("attempt 3")).toBeTruthy();
  expect(screen.getByText(/Traceback:/).tagName).toBe("PRE");
  fireEvent.click(screen.getByRole("button", { name: "Copy error" }));
  expect(copied).toEqual([
    "ValueError: no shop. Raised at shop.py:3, in pay.\n\n" +
      "step each[0]/pay, attempt 3, node-failed\n\nTraceback:\n  in pay",
  ]);
});

test("a failure of the run as a whole, without a traceback, is its message and its code", () => {
  const copied = copies();
  render(<FailureBox error={ERROR} where={null} />);
  expect(screen.queryByText("Traceback")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Copy error" }));
  expect(copied).toEqual(["ValueError: no shop. Raised at shop.py:3, in pay.\n\nnode-failed"]);
});
