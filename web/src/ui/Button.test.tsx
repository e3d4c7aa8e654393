import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Button } from "@/ui/Button";

afterEach(cleanup);

test("a disabled button does nothing, keeps its focus and says why", () => {
  const onClick = vi.fn();
  render(
    <Button onClick={onClick} disabledReason="Fix 1 error to run">
      Run
    </Button>,
  );
  const button = screen.getByRole("button", { name: "Run" });
  fireEvent.click(button);
  button.focus();
  expect(onClick).not.toHaveBeenCalled();
  expect(document.activeElement).toBe(button);
  const reason = button.getAttribute("aria-describedby") ?? "";
  expect(document.getElementById(reason)?.textContent).toBe("Fix 1 error to run");
});

test("the keys of a button are shown and are no part of its name", () => {
  const onClick = vi.fn();
  render(
    <Button keys="Ctrl ↵" onClick={onClick}>
      Run
    </Button>,
  );
  fireEvent.click(screen.getByRole("button", { name: "Run" }));
  expect(onClick).toHaveBeenCalledOnce();
  expect(screen.getByText("Ctrl ↵")).toBeDefined();
});
