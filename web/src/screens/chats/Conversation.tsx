import { useRef, useState } from "react";
import { Link } from "react-router";
import { useCancelMessage, useSendMessage, useUpdateChat } from "@/api/chatMutations";
import { showError } from "@/api/showError";
import type { ChatResponse, MessageResponse } from "@/api/types";
import { hasEnded } from "@/stream/chat/replyReducer";
import { branchTo, newestBelow } from "@/stream/chat/tree";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { EmptyState } from "@/ui/EmptyState";
import { Icon } from "@/ui/icons";
import { useBreakpoint } from "@/ui/useMedia";
import { useStickToEnd } from "@/ui/useStickToEnd";
import { AboutChat } from "./AboutChat";
import { Composer, type Said } from "./Composer";
import styles from "./Conversation.module.css";
import { chatTitle } from "./chatWords";
import { Reply } from "./Reply";
import { UserMessage } from "./UserMessage";

/** One chat: the branch that is shown, the field for the next message, and what answers. */
export function Conversation({ chat }: { chat: ChatResponse }) {
  const branch = branchTo(chat.messages, chat.head);
  const last = branch.at(-1);
  const isNarrow = useBreakpoint("narrow");
  const [isAboutOpen, setAboutOpen] = useState(false);
  const update = useUpdateChat(chat.chat_id);
  const show = (messageId: string) =>
    update.mutate({ head: newestBelow(chat.messages, messageId) }, { onError: showError });
  const about = <AboutChat chat={chat} reply={lastReply(branch)} />;
  const column = useRef<HTMLDivElement>(null);
  useStickToEnd(column);
  return (
    <section className={styles.open} data-narrow={isNarrow} aria-label={chatTitle(chat)}>
      <div className={styles.talk}>
        <header className={isNarrow ? styles.head : "visually-hidden"}>
          <Link to="/chat" className={styles.back}>
            <Icon name="left" small />
            Chats
          </Link>
          <h2 title={chatTitle(chat)}>{chatTitle(chat)}</h2>
          {isNarrow && (
            <Button small onClick={() => setAboutOpen(true)}>
              About
            </Button>
          )}
        </header>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
        <section className={styles.messages} data-scroller tabIndex={0} aria-label="Conversation">
          <div className={styles.column} ref={column}>
            {branch.map((message) =>
              message.role === "user" ? (
                <UserMessage key={message.message_id} message={message} onShow={show} />
              ) : (
                <Reply key={message.message_id} message={message} onShow={show} />
              ),
            )}
            {branch.length === 0 && (
              <EmptyState sign={<Icon name="chat" />} title="Say something.">
                The answer streams here; what it thought and called is folded above it.
              </EmptyState>
            )}
          </div>
        </section>
        <NextMessage chat={chat} last={last} />
      </div>
      {isNarrow ? (
        <Dialog open={isAboutOpen} side title="This chat" onClose={() => setAboutOpen(false)}>
          {about}
        </Dialog>
      ) : (
        <aside className={styles.about} aria-label="This chat">
          {about}
        </aside>
      )}
    </section>
  );
}

function NextMessage({ chat, last }: { chat: ChatResponse; last: MessageResponse | undefined }) {
  const send = useSendMessage();
  const cancel = useCancelMessage(chat.chat_id);
  const isAnswering = last?.role === "assistant" && !hasEnded(last.status ?? "completed");
  const onSend = ({ text, attachments }: Said) =>
    send
      .mutateAsync({ chatId: chat.chat_id, body: { message: text, ...attachments } })
      .then(() => true)
      .catch((error: Error) => {
        showError(error);
        return false;
      });
  const stop = () => last && cancel.mutate(last.message_id, { onError: showError });
  return (
    <Composer
      key={chat.chat_id}
      placeholder="Reply, or attach a file"
      onSend={onSend}
      onStop={isAnswering ? stop : undefined}
    />
  );
}

function lastReply(branch: readonly MessageResponse[]): MessageResponse | undefined {
  return branch.findLast(({ role }) => role === "assistant");
}
