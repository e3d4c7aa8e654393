import { useEffect, useState } from "react";
import type { MessageResponse } from "@/api/types";
import { type FramesState, followFrames } from "@/stream/chat/frames";
import { applyChatEvents, hasEnded, type ReplyState } from "@/stream/chat/replyReducer";
import { onNextFrame } from "@/stream/runStore";

/** A reply as it is shown, and how the page is connected to it. */
export type FollowedReply = ReplyState & { readonly connection: FramesState };

/** Follow a reply until it has ended, drawing once per frame. */
export function useReply(message: MessageResponse): FollowedReply {
  const { chat_id, message_id } = message;
  const stored = storedReply(message);
  const isOver = hasEnded(stored.status);
  const [live, setLive] = useState<ReplyState | null>(null);
  const [connection, setConnection] = useState<FramesState>("connecting");
  // biome-ignore lint/correctness/useExhaustiveDependencies: begins with what is stored, once
  useEffect(() => {
    if (isOver) return;
    let reply = stored;
    let cancelDrawing = () => {};
    const stop = followFrames(
      { path: `chats/${chat_id}/messages/${message_id}`, after: () => reply.cursor },
      {
        onFrames: (frames) => {
          reply = applyChatEvents(reply, frames);
          cancelDrawing();
          cancelDrawing = onNextFrame(() => setLive(reply));
          return !hasEnded(reply.status);
        },
        onState: setConnection,
      },
    );
    return () => {
      stop();
      cancelDrawing();
      setLive(null);
    };
  }, [chat_id, message_id, isOver]);
  return { ...(isOver ? stored : (live ?? stored)), connection };
}

function storedReply({ blocks, status, cursor, usage }: MessageResponse): ReplyState {
  return {
    blocks: blocks as unknown as ReplyState["blocks"],
    status: status ?? "completed",
    cursor: cursor ?? 0,
    usage: usage ?? null,
  };
}
