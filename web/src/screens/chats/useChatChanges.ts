import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { queryKeys } from "@/api/queryKeys";
import { followFrames } from "@/stream/chat/frames";

/** Read a chat again whenever it changes, in this window or in another. */
export function useChatChanges(chatId: string | null): void {
  const client = useQueryClient();
  useEffect(() => {
    if (chatId === null) return;
    const revision = () =>
      client.getQueryData<{ revision: number }>(queryKeys.chat(chatId))?.revision ?? 0;
    return followFrames(
      { path: `chats/${chatId}`, after: revision },
      {
        onFrames: () => {
          void client.invalidateQueries({ queryKey: queryKeys.chat(chatId) });
          void client.invalidateQueries({ queryKey: queryKeys.allChats });
          return true;
        },
        onState: () => {},
      },
    );
  }, [client, chatId]);
}
