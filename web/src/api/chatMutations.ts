import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { call, newKey } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";
import type { Operations } from "@/api/types";

type Body<Name extends keyof Operations> = Operations[Name]["body"];

async function chatChanged(client: QueryClient, chatId: string): Promise<void> {
  await Promise.all([
    client.invalidateQueries({ queryKey: queryKeys.allChats }),
    client.invalidateQueries({ queryKey: queryKeys.chat(chatId) }),
  ]);
}

export function useCreateChat() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Body<"createChat">) => call("createChat", { body, key: newKey() }),
    onSuccess: () => client.invalidateQueries({ queryKey: queryKeys.allChats }),
  });
}

/** Rename a chat, or show another branch of it. */
export function useUpdateChat(chatId: string) {
  return useOfChat(chatId, (body: Body<"updateChat">) =>
    call("updateChat", { path: { chat_id: chatId }, body }),
  );
}

export function useDeleteChat() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (chatId: string) => call("deleteChat", { path: { chat_id: chatId } }),
    onSuccess: (_, chatId) => {
      client.removeQueries({ queryKey: queryKeys.chat(chatId) });
      return client.invalidateQueries({ queryKey: queryKeys.allChats });
    },
  });
}

/** Say something; the answer follows. */
export function useSendMessage() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ chatId, body }: { chatId: string; body: Body<"sendMessage"> }) =>
      call("sendMessage", { path: { chat_id: chatId }, body, key: newKey() }),
    onSuccess: (_, { chatId }) => chatChanged(client, chatId),
  });
}

/** Say something else in the place of a message; it begins another branch. */
export function useEditMessage(chatId: string) {
  return useOfChat(
    chatId,
    ({ messageId, body }: { messageId: string; body: Body<"editMessage"> }) =>
      call("editMessage", {
        path: { chat_id: chatId, message_id: messageId },
        body,
        key: newKey(),
      }),
  );
}

/** Have another answer beside one: a new one, or one that goes on where it ended. */
export function useBranchOff(chatId: string) {
  return useOfChat(chatId, ({ messageId, how }: { messageId: string; how: "retry" | "continue" }) =>
    call(how === "retry" ? "retryMessage" : "continueMessage", {
      path: { chat_id: chatId, message_id: messageId },
      key: newKey(),
    }),
  );
}

/** Stop an answer. */
export function useCancelMessage(chatId: string) {
  return useOfChat(chatId, (messageId: string) =>
    call("cancelMessage", { path: { chat_id: chatId, message_id: messageId }, key: newKey() }),
  );
}

function useOfChat<Given, Answer>(chatId: string, mutationFn: (given: Given) => Promise<Answer>) {
  const client = useQueryClient();
  return useMutation({ mutationFn, onSuccess: () => chatChanged(client, chatId) });
}
