import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
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

test("mathematics is drawn, prices are not", async () => {
  const { container } = render(<Markdown text={"From $5 to $10 it is $x^2$.\n\n\\[\ny\n\\]"} />);
  await waitFor(() => expect(container.querySelectorAll("math")).toHaveLength(2), {
    timeout: 20_000,
  });
  expect(container.textContent).toContain("From $5 to $10 it is");
});

test("a picture that is in the text is shown, and code can be copied", async () => {
  const copied = vi.spyOn(navigator.clipboard, "writeText").mockResolvedValue();
  const picture = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
  render(
    <Markdown text={`![dot](${picture}) ![no](data:text/html,x)\n\n\`\`\`js\nlet a;\n\`\`\``} />,
  );
  expect((await screen.findByRole("img", { name: "dot" })).getAttribute("src")).toBe(picture);
  expect(screen.getByText("Picture: no").tagName).toBe("SPAN");
  fireEvent.click(screen.getByRole("button", { name: "Copy the code" }));
  expect(copied).toHaveBeenCalledWith("let a;");
});
