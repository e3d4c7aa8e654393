import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { useDeleteChat, useUpdateChat } from "@/api/chatMutations";
import { useChats } from "@/api/chatQueries";
import { errorText } from "@/api/errorText";
import { showError } from "@/api/showError";
import type { ChatSummary } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button, ButtonLink } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextField } from "@/ui/Field";
import { formatMoment } from "@/ui/format";
import { IconButton } from "@/ui/IconButton";
import { Menu } from "@/ui/Menu";
import { Skeleton } from "@/ui/Skeleton";
import { showToast } from "@/ui/toasts";
import styles from "./ChatList.module.css";
import { chatLine, chatTitle } from "./chatWords";

/** The chats, the one that changed last first. */
export function ChatList({ chosen }: { chosen: string | null }) {
  const query = useChats();
  const chats = query.data?.pages.flatMap((page) => page.chats) ?? [];
  const [renamed, setRenamed] = useState<ChatSummary | null>(null);
  return (
    <nav className={styles.side} aria-label="Chats">
      <header className={styles.header}>
        <h1>Chat</h1>
        <ButtonLink small icon="add" to="/chat">
          New chat
        </ButtonLink>
      </header>
      {query.isPending && <Skeleton label="Loading the chats" lines={4} />}
      {query.error && <ErrorNote error={query.error} />}
      <ul className={styles.list}>
        {chats.map((chat) => (
          <ChatRow
            key={chat.chat_id}
            chat={chat}
            isChosen={chat.chat_id === chosen}
            onRename={() => setRenamed(chat)}
          />
        ))}
      </ul>
      {query.data && chats.length === 0 && <p className={styles.none}>No chats yet.</p>}
      {query.hasNextPage && (
        <Button small onClick={() => void query.fetchNextPage()}>
          Show more
        </Button>
      )}
      {renamed && <RenameChat chat={renamed} onClose={() => setRenamed(null)} />}
    </nav>
  );
}

type ChatRowProps = { chat: ChatSummary; isChosen: boolean; onRename: () => void };

function ChatRow({ chat, isChosen, onRename }: ChatRowProps) {
  const navigate = useNavigate();
  const remove = useDeleteChat();
  const title = chatTitle(chat);
  const onDelete = () =>
    remove.mutate(chat.chat_id, {
      onSuccess: () => {
        showToast({ text: `“${title}” was deleted. Its runs are kept.` });
        if (isChosen) navigate("/chat");
      },
      onError: showError,
    });
  return (
    <li className={styles.row} data-chosen={isChosen}>
      <Link to={`/chat/${chat.chat_id}`} aria-current={isChosen ? "page" : undefined}>
        <span className={styles.title} title={title}>
          {title}
        </span>
        <small>{chatLine(chat)}</small>
        <time dateTime={chat.updated_at}>{formatMoment(new Date(chat.updated_at))}</time>
      </Link>
      <Menu
        trigger={<IconButton small icon="more" label={`Commands for ${title}`} />}
        items={[
          { label: "Rename", icon: "edit", onSelect: onRename },
          { label: "Delete", icon: "trash", danger: true, onSelect: onDelete },
        ]}
      />
    </li>
  );
}

function RenameChat({ chat, onClose }: { chat: ChatSummary; onClose: () => void }) {
  const [title, setTitle] = useState(chatTitle(chat));
  const update = useUpdateChat(chat.chat_id);
  const submit = () => update.mutate({ title: title.trim() }, { onSuccess: onClose });
  return (
    <Dialog
      open
      title="Rename the chat"
      onClose={onClose}
      footer={
        <Button
          kind="primary"
          disabledReason={title.trim() === "" ? "It needs a title." : undefined}
          onClick={submit}
        >
          Rename
        </Button>
      }
    >
      <TextField
        label="Title"
        value={title}
        maxLength={200}
        error={update.error ? errorText(update.error) : undefined}
        onChange={(event) => setTitle(event.target.value)}
      />
    </Dialog>
  );
}
