import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { newKey } from "@/api/http";
import { readJson, writeJson } from "@/json";
import { type RequestAnswer, useAnswerDraft } from "./answerDraft";
import { RequestForm } from "./RequestForm";
import { readRequest } from "./requestFields";

function show(request: unknown) {
  const answers: RequestAnswer[] = [];
  const fields = readRequest({
    request_id: "r9",
    path: "ask",
    request,
    since: "2026-01-31T12:00:00Z",
    timeout_s: null,
  });
  render(
    <RequestForm
      draftKey={newKey()}
      request={fields}
      isSending={false}
      onAnswer={(answer) => answers.push(answer)}
    />,
  );
  return answers;
}

const APPROVAL = {
  kind: "approval",
  prompt: "Send this?",
  actions: ["approve", "ask_again"],
  form: { type: "object", properties: { audience: { type: "string" } } },
  value: "Dear all",
  editable: true,
};

test("the button of an action answers with it, with note and form", () => {
  const answers = show(APPROVAL);
  fireEvent.change(screen.getByLabelText("Note"), { target: { value: "numbers first" } });
  fireEvent.change(screen.getByLabelText("Audience"), { target: { value: "team" } });
  fireEvent.click(screen.getByRole("button", { name: "Ask again" }));
  expect(answers).toEqual([
    { decision: "ask_again", note: "numbers first", form: { audience: "team" } },
  ]);
});

test("an edited value goes on in place of the old one", () => {
  const answers = show({ ...APPROVAL, form: null });
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  fireEvent.change(screen.getByLabelText("What is passed on, edited"), {
    target: { value: "Hello" },
  });
  fireEvent.click(screen.getByRole("button", { name: "Approve" }));
  expect(answers).toEqual([{ decision: "approve", value: "Hello" }]);
});

test("JSON that is not complete is not sent", () => {
  const answers = show({ ...APPROVAL, form: null, value: { to: "all" } });
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  fireEvent.change(screen.getByLabelText("What is passed on, edited"), {
    target: { value: '{"to"' },
  });
  fireEvent.click(screen.getByRole("button", { name: "Approve" }));
  fireEvent.click(screen.getByRole("button", { name: "Ask again" }));
  expect(answers).toEqual([]);
  expect(screen.getByText("This is not JSON.")).toBeTruthy();
});

test("a request without actions takes JSON or text", () => {
  const answers = show("How many?");
  fireEvent.change(screen.getByLabelText("Answer"), { target: { value: "3" } });
  fireEvent.click(screen.getByRole("button", { name: "Answer" }));
  fireEvent.change(screen.getByLabelText("Answer"), { target: { value: "three" } });
  fireEvent.click(screen.getByRole("button", { name: "Answer" }));
  expect(answers).toEqual([{ answer: 3 }, { answer: "three" }]);
});

test("a result is given with its decision only, as JSON where it is some", () => {
  const actions = ["run_again", "give_result"];
  const answers = show({ kind: "interrupted", prompt: "It was cut off.", actions });
  fireEvent.change(screen.getByLabelText("Result"), { target: { value: "null" } });
  fireEvent.click(screen.getByRole("button", { name: "Give result" }));
  fireEvent.click(screen.getByRole("button", { name: "Run again" }));
  fireEvent.change(screen.getByLabelText("Result"), { target: { value: "sent" } });
  fireEvent.click(screen.getByRole("button", { name: "Give result" }));
  expect(answers).toEqual([
    { decision: "give_result", value: null },
    { decision: "run_again" },
    { decision: "give_result", value: "sent" },
  ]);
});

test("a budget is raised by the limits that are filled in, or the run is stopped", () => {
  const answers = show({
    kind: "budget",
    message: "Raise the budget, or stop the run?",
    actions: ["raise", "stop"],
    limits: { usd: 5, tokens: 200000 },
    used: { usd: 5.2, tokens: 90000 },
  });
  screen.getByText("Used: $5.20 of $5.00. Empty keeps it.");
  const dollars = screen.getByLabelText("New limit: dollars");
  fireEvent.change(dollars, { target: { value: "7.5" } });
  fireEvent.click(screen.getByRole("button", { name: "Raise" }));
  fireEvent.click(screen.getByRole("button", { name: "Stop" }));
  expect(answers).toEqual([{ decision: "raise", value: { usd: 7.5 } }, { decision: "stop" }]);
});

test("a budget is raised by what is proposed, if nothing else is filled in", () => {
  const answers = show({
    kind: "budget",
    message: "Raise the budget, or stop the run?",
    actions: ["raise", "stop"],
    limits: { usd: 5, tokens: 2000 },
    used: { usd: 0, tokens: 0 },
    proposed: { tokens: 5000 },
  });
  fireEvent.click(screen.getByRole("button", { name: "Raise" }));
  const tokens = screen.getByLabelText("New limit: tokens") as HTMLInputElement;
  expect(tokens.value).toBe("5000");
  fireEvent.change(tokens, { target: { value: "" } });
  fireEvent.change(screen.getByLabelText("New limit: dollars"), { target: { value: "7.5" } });
  fireEvent.click(screen.getByRole("button", { name: "Raise" }));
  expect(answers).toEqual([
    { decision: "raise", value: { tokens: 5000 } },
    { decision: "raise", value: { usd: 7.5 } },
  ]);
});

const CALL = {
  kind: "approval",
  prompt: "May the tool send_mail be called with these arguments?",
  actions: ["approve", "reject"],
  value: { to: "Ada", copies: 1 },
  valueSchema: {
    type: "object",
    properties: {
      to: { type: "string" },
      copies: { type: "integer" },
      tags: { type: "array" },
    },
    required: ["to"],
  },
  editable: true,
  tool: { name: "send_mail", kind: "mcp", effect: "once", call_id: "c1", server: "post" },
};

test("a call says which tool it is of, and what that does", () => {
  show(CALL);
  expect(screen.getByText("MCP tool")).toBeTruthy();
  expect(screen.getByText("server post")).toBeTruthy();
  expect(screen.getByText(/must not act twice/)).toBeTruthy();
});

test("arguments are changed in a form of their schema", () => {
  const answers = show(CALL);
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  fireEvent.change(screen.getByLabelText("To"), { target: { value: "Grace" } });
  expect(screen.getByText("changed by you")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Approve" }));
  expect(answers).toEqual([{ decision: "approve", value: { to: "Grace", copies: 1 } }]);
});

test("a field without a valid value is not sent as it was before", () => {
  const answers = show(CALL);
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  const tags = screen.getByLabelText("Tags");
  fireEvent.change(tags, { target: { value: '["a' } });
  fireEvent.click(screen.getByRole("button", { name: "Approve" }));
  expect(answers).toEqual([]);
  fireEvent.change(tags, { target: { value: '["a"]' } });
  fireEvent.click(screen.getByRole("button", { name: "Approve" }));
  expect(answers).toEqual([{ decision: "approve", value: { to: "Ada", copies: 1, tags: ["a"] } }]);
});

test("the form goes on as JSON, and a rejection has no arguments", () => {
  const answers = show(CALL);
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  fireEvent.change(screen.getByLabelText("To"), { target: { value: "Grace" } });
  fireEvent.change(screen.getByLabelText("Note"), { target: { value: "not now" } });
  fireEvent.click(screen.getByRole("button", { name: "Reject" }));
  fireEvent.click(screen.getByRole("button", { name: "As JSON" }));
  const json = screen.getByLabelText("Arguments, edited") as HTMLTextAreaElement;
  expect(JSON.parse(json.value)).toEqual({ to: "Grace", copies: 1 });
  expect(answers).toEqual([{ decision: "reject", note: "not now" }]);
});

test("arguments that no schema names are edited as JSON", () => {
  show({ ...CALL, value: { to: "Ada", other: 1 } });
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  expect(screen.getByLabelText("Arguments, edited")).toBeTruthy();
});

test("a request has one draft, whatever shows its buttons", () => {
  const answers: RequestAnswer[] = [];
  const fields = readRequest({
    request_id: "r9",
    path: "ask",
    request: { ...APPROVAL, form: null },
    since: "2026-01-31T12:00:00Z",
    timeout_s: null,
  });
  function Card({ draftKey }: { draftKey: string }) {
    const draft = useAnswerDraft(draftKey, fields);
    return (
      <button type="button" onClick={() => answers.push(draft.answerWith("approve"))}>
        card {draftKey}
      </button>
    );
  }
  render(
    <>
      <RequestForm draftKey="e1 r9" request={fields} isSending={false} onAnswer={() => undefined} />
      <Card draftKey="e1 r9" />
      <Card draftKey="e2 r9" />
    </>,
  );
  fireEvent.change(screen.getByLabelText("Note"), { target: { value: "seen" } });
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  fireEvent.change(screen.getByLabelText("What is passed on, edited"), {
    target: { value: "Hello" },
  });
  fireEvent.click(screen.getByRole("button", { name: "card e1 r9" }));
  fireEvent.click(screen.getByRole("button", { name: "card e2 r9" }));
  expect(answers).toEqual([
    { decision: "approve", note: "seen", value: "Hello" },
    { decision: "approve" },
  ]);
});

test("numbers that nobody touched go on in the digits that they came in", () => {
  const value = readJson('{"order": 3544790567247868102, "price": 1.0, "big": 1e400, "note": "a"}');
  const answers = show({ ...APPROVAL, form: null, value });
  fireEvent.click(screen.getByRole("button", { name: "Edit first" }));
  const area = screen.getByLabelText<HTMLTextAreaElement>("What is passed on, edited");
  fireEvent.change(area, { target: { value: area.value.replace('"a"', '"b"') } });
  fireEvent.click(screen.getByRole("button", { name: "Approve" }));
  expect(writeJson(answers)).toBe(
    '[{"decision":"approve","value":{"order":3544790567247868102,"price":1.0,"big":1e400,"note":"b"}}]',
  );
});
