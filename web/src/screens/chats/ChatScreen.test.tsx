import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { json, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { ChatScreen } from "./ChatScreen";

const AT = "2026-01-31T12:00:00Z";
const CHAT = {
  chat_id: "c1",
  title: "Caching headers",
  created_at: AT,
  updated_at: AT,
  plan_id: null,
  plan_revision: null,
  node_id: null,
  config: { model: "gpt-5.6-luna", tools: ["search"] },
  head: "a2",
  revision: 3,
  status: "completed",
};
const text = (id: string, words: string) => ({ type: "text", id, nodeId: "agent", text: words });
const message = (message_id: string, parent_id: string | null, more: object) => ({
  message_id,
  parent_id,
  chat_id: "c1",
  created_at: AT,
  role: "assistant",
  origin: "send",
  siblings: [message_id],
  blocks: [],
  execution_id: "e1",
  status: "completed",
  cursor: 9,
  usage: { inputTokens: 500, outputTokens: 112, totalTokens: 612, costUsd: 0.0003 },
  ...more,
});
const QUESTION = message("q1", null, {
  role: "user",
  blocks: [{ type: "text", id: "t", text: "What should it send?" }],
  execution_id: null,
  status: null,
  cursor: null,
  usage: null,
});
const FIRST = message("a1", "q1", { siblings: ["a1", "a2"], blocks: [text("b1", "Nothing.")] });
const CALL = {
  type: "tool_call",
  id: "b2",
  nodeId: "agent",
  toolCallId: "t1",
  toolName: "search",
  toolArgs: { query: "cache headers" },
  status: "completed",
  result: "Two notes",
  error: null,
};
const SECOND = message("a2", "q1", {
  origin: "retry",
  siblings: ["a1", "a2"],
  blocks: [CALL, text("b3", "Send three headers.")],
});
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/chats": { chats: [CHAT], next_cursor: null },
    "GET /api/chats/c1": { ...CHAT, messages: [QUESTION, FIRST, SECOND] },
    "PATCH /api/chats/c1": CHAT,
    "POST /api/chats": { ...CHAT, head: null, messages: [] },
    "POST /api/chats/c1/messages": { chat_id: "c1", user_message: QUESTION, message: FIRST },
    "POST /api/chats/c1/messages/a2/retry": { chat_id: "c1", message: SECOND },
    "POST /api/chats/c1/messages/q1/edit": {
      chat_id: "c1",
      user_message: QUESTION,
      message: FIRST,
    },
    "GET /api/plans": { plans: [], next_cursor: null },
    "GET /api/providers": { details: [], providers: {}, default_models: {}, models: {} },
    "GET /api/tools": { tools: [{ name: "search", description: "", effect: "read" }] },
  });
});

afterEach(() => api.close());

function show(at: string) {
  return renderRoutes([{ path: "/chat/:chatId?", Component: ChatScreen }], at).router;
}

const sent = (route: string) =>
  api.requests.filter((each) => each.route === route).map(({ body }) => JSON.parse(body || "null"));

test("a chat shows the branch of its head; what was called is folded", async () => {
  show("/chat/c1");
  const answer = within(await screen.findByRole("article", { name: "Answer" }));
  expect(await answer.findByText("Send three headers.")).toBeTruthy();
  expect(screen.queryByText("Nothing.")).toBeNull();
  expect(answer.getByText("612 tokens, $0.0003")).toBeTruthy();
  expect(answer.queryByText("Two notes")).toBeNull();
  fireEvent.click(answer.getByText("search"));
  expect(await answer.findByText("Two notes")).toBeTruthy();
});

test("the arrows show another answer", async () => {
  show("/chat/c1");
  const answer = within(await screen.findByRole("article", { name: "Answer" }));
  expect(answer.getByRole("group", { name: "answer 2 of 2" })).toBeTruthy();
  fireEvent.click(answer.getByRole("button", { name: "Previous answer" }));
  await waitFor(() => expect(sent("PATCH /api/chats/c1")).toEqual([{ head: "a1" }]));
});

test("an answer is written again beside the first", async () => {
  show("/chat/c1");
  fireEvent.click(await screen.findByRole("button", { name: "Retry" }));
  await waitFor(() => expect(sent("POST /api/chats/c1/messages/a2/retry")).toHaveLength(1));
});

test("an edited message is sent as another branch", async () => {
  show("/chat/c1");
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  const field = screen.getByDisplayValue("What should it send?");
  fireEvent.change(field, { target: { value: "And the pages?" } });
  fireEvent.click(screen.getByRole("button", { name: "Send as another branch" }));
  await waitFor(() =>
    expect(sent("POST /api/chats/c1/messages/q1/edit")).toEqual([
      { message: "And the pages?", images: [], files: [] },
    ]),
  );
});

test("pressing twice begins one branch", async () => {
  const pressTwice = async (press: () => void, route: string, answer: object) => {
    const held: (() => void)[] = [];
    api.routes[route] = (response) => void held.push(() => json(200, answer)(response, ""));
    press();
    await waitFor(() => expect(held).toHaveLength(1));
    press();
    held[0]?.();
  };
  show("/chat/c1");
  fireEvent.click(await screen.findByRole("button", { name: "Edit" }));
  const [field, retry] = [
    screen.getByDisplayValue("What should it send?"),
    screen.getByRole("button", { name: "Retry" }),
  ];
  const retried = "POST /api/chats/c1/messages/a2/retry";
  await pressTwice(() => fireEvent.click(retry), retried, { chat_id: "c1", message: SECOND });
  const edited = "POST /api/chats/c1/messages/q1/edit";
  const turn = { chat_id: "c1", user_message: QUESTION, message: FIRST };
  await pressTwice(() => fireEvent.keyDown(field, { key: "Enter", ctrlKey: true }), edited, turn);
  await waitFor(() => expect(screen.queryByRole("form", { name: "Edit the message" })).toBeNull());
  expect([sent(retried).length, sent(edited).length]).toEqual([1, 1]);
});

test("Enter sends a message, with what is attached; Shift Enter does not", async () => {
  show("/chat/c1");
  const field = await screen.findByRole("textbox", { name: "Message" });
  fireEvent.change(screen.getByLabelText("Files to attach"), {
    target: { files: [new File(["a,b"], "data.csv", { type: "text/csv" })] },
  });
  await screen.findByText("data.csv");
  fireEvent.change(field, { target: { value: "Sum it up" } });
  fireEvent.keyDown(field, { key: "Enter", shiftKey: true });
  expect(sent("POST /api/chats/c1/messages")).toHaveLength(0);
  fireEvent.keyDown(field, { key: "Enter" });
  await waitFor(() =>
    expect(sent("POST /api/chats/c1/messages")).toEqual([
      {
        message: "Sum it up",
        images: [],
        files: [{ name: "data.csv", mime: "text/csv", data: btoa("a,b") }],
      },
    ]),
  );
  await waitFor(() => expect((field as HTMLTextAreaElement).value).toBe(""));
});

test("a file that is neither an image nor a text is refused with a sentence", async () => {
  const { readAttachment } = await import("./attachments");
  const file = new File(["x"], "tool.exe", { type: "application/octet-stream" });
  await expect(readAttachment(file)).rejects.toThrow("tool.exe is neither an image nor a text.");
});

test("a new chat is made by its first message, with the chosen tools", async () => {
  const router = show("/chat");
  fireEvent.click(await screen.findByRole("button", { name: "Options" }));
  fireEvent.click(await screen.findByRole("checkbox", { name: "search" }));
  const field = screen.getByRole("textbox", { name: "Message", hidden: true });
  fireEvent.change(field, { target: { value: "Hello" } });
  fireEvent.submit(screen.getByRole("form", { name: "Message", hidden: true }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/chat/c1"));
  expect(sent("POST /api/chats")).toEqual([{ config: { tools: ["search"] } }]);
  await waitFor(() => expect(sent("POST /api/chats/c1/messages")).toHaveLength(1));
});
