import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { SelectField, TextField } from "@/ui/Field";

afterEach(cleanup);

test("an error replaces the hint and is tied to the control", () => {
  const { rerender } = render(<TextField label="Model" hint="Any of openai" />);
  const described = () => {
    const id = screen.getByLabelText("Model").getAttribute("aria-describedby") ?? "";
    return document.getElementById(id)?.textContent;
  };
  expect(described()).toBe("Any of openai");
  rerender(<TextField label="Model" hint="Any of openai" error="Not available." />);
  expect(described()).toBe("Not available.");
  expect(screen.getByLabelText("Model").getAttribute("aria-invalid")).toBe("true");
});

test("a select has its label as its name", () => {
  render(
    <SelectField label="Provider" defaultValue="b">
      <option value="a">A</option>
      <option value="b">B</option>
    </SelectField>,
  );
  expect((screen.getByRole("combobox", { name: "Provider" }) as HTMLSelectElement).value).toBe("b");
});
