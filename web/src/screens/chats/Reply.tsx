import { useEffect, useRef } from "react";
import { useBranchOff } from "@/api/chatMutations";
import { showError } from "@/api/showError";
import type { ExecutionStatus, MessageResponse } from "@/api/types";
import { replyText } from "@/stream/chat/blocks";
import { hasEnded } from "@/stream/chat/replyReducer";
import { announce } from "@/ui/announcer";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { Note } from "@/ui/Note";
import { Status } from "@/ui/Status";
import { BranchSwitch } from "./BranchSwitch";
import { usageWords } from "./chatWords";
import styles from "./Message.module.css";
import { ReplyBlocks } from "./ReplyBlocks";
import { type FollowedReply, useReply } from "./useReply";

type ReplyProps = {
  message: MessageResponse;
  onShow: (messageId: string) => void;
};

/** A reply while it is written and afterwards: its parts, and what can be done with it. */
export function Reply({ message, onShow }: ReplyProps) {
  const reply = useReply(message);
  const isOver = hasEnded(reply.status);
  useAnnouncements(reply.status);
  return (
    <article className={styles.reply} aria-label="Answer" aria-busy={!isOver}>
      <ReplyBlocks blocks={reply.blocks} isWriting={reply.status === "executing"} />
      <Progress reply={reply} />
      {isOver && <Foot {...{ message, reply, onShow }} />}
    </article>
  );
}

/** What is so where the parts do not say it. */
function Progress({ reply }: { reply: FollowedReply }) {
  const { status, blocks, connection } = reply;
  if (connection === "refused" && !hasEnded(status)) {
    return <Note kind="error">This answer cannot be followed. Load the page again.</Note>;
  }
  if (connection === "reconnecting" && !hasEnded(status)) {
    return <Status status="retrying">Reconnecting. The answer goes on meanwhile.</Status>;
  }
  if (status === "cancelled") return <Status status="cancelled">Stopped</Status>;
  if (status === "failed" && !blocks.some(({ type }) => type === "error")) {
    return <Status status="failed">Failed</Status>;
  }
  if (blocks.length > 0) return null;
  if (status === "starting") return <Status status="pending">Waiting for its turn</Status>;
  if (status === "executing") return <Status status="running">Working</Status>;
  return null;
}

type FootProps = ReplyProps & { reply: FollowedReply };

function Foot({ message, reply, onShow }: FootProps) {
  const branch = useBranchOff(message.chat_id);
  const text = replyText(reply.blocks);
  const again = (how: "retry" | "continue") => {
    if (!branch.isPending)
      branch.mutate({ messageId: message.message_id, how }, { onError: showError });
  };
  return (
    <footer className={styles.foot}>
      <BranchSwitch message={message} of="answer" onShow={onShow} />
      {text && (
        <Button small kind="quiet" icon="copy" onClick={() => void copyText(text, "Answer")}>
          Copy
        </Button>
      )}
      <Button small kind="quiet" icon="retry" onClick={() => again("retry")}>
        Retry
      </Button>
      <Button small kind="quiet" onClick={() => again("continue")}>
        Continue
      </Button>
      <span className={styles.facts}>{usageWords(reply.usage)}</span>
    </footer>
  );
}

const ANNOUNCED: Partial<Record<ExecutionStatus, string>> = {
  completed: "The answer is complete.",
  failed: "The answer failed.",
  paused: "The answer waits for you.",
  cancelled: "The answer was stopped.",
};

/** Say the end of an answer, and that it waits, where it happens while the page is open. */
function useAnnouncements(status: ExecutionStatus): void {
  const before = useRef(status);
  useEffect(() => {
    if (before.current === status) return;
    before.current = status;
    const words = ANNOUNCED[status];
    if (words) announce(words);
  }, [status]);
}
