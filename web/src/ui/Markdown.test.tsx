import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Markdown } from "@/ui/Markdown";

afterEach(cleanup);

test("Markdown has headings below the page's own, tables and links that open elsewhere", async () => {
  render(
    <Markdown
      text={"# Result\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[more](https://example.org/)"}
    />,
  );
  expect((await screen.findByRole("heading", { name: "Result" })).tagName).toBe("H3");
  expect(screen.getByRole("table")).toBeDefined();
  const link = screen.getByRole("link", { name: "more" });
  expect(link.getAttribute("rel")).toBe("noopener noreferrer");
});

test("Markdown loads no picture, runs no script and shows no HTML", async () => {
  const text =
    '![chart](https://example.org/a.png) <img src=x onerror="alert(1)"> [x](javascript:alert(1))';
  const { container } = render(<Markdown text={text} />);
  expect((await screen.findByRole("link", { name: "Picture: chart" })).getAttribute("href")).toBe(
    "https://example.org/a.png",
  );
  expect(container.querySelector("img, script, [onerror]")).toBeNull();
  expect(screen.getByText("x").getAttribute("href")).toBe("");
});

test("a line after a list stays a line of its own", async () => {
  const { container } = render(
    <Markdown text={"1. a file\n2. a table\nRecommendation: the table"} />,
  );
  await screen.findByRole("list");
  expect(container.querySelector("li:last-child")?.innerHTML).toBe(
    "a table<br>\nRecommendation: the table",
  );
});
