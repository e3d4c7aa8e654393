import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { call } from "@/api/http";
import { queryKeys } from "@/api/queryKeys";

/** Chats, the one that changed last first, page by page. */
export function useChats() {
  return useInfiniteQuery({
    queryKey: queryKeys.allChats,
    queryFn: ({ pageParam, signal }) => call("listChats", { query: { cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** A chat with all its messages. */
export function useChat(chatId: string | null) {
  return useQuery({
    queryKey: queryKeys.chat(chatId ?? ""),
    queryFn: ({ signal }) => call("getChat", { path: { chat_id: chatId ?? "" }, signal }),
    enabled: chatId !== null,
  });
}
