import { useState } from "react";
import { useEditMessage } from "@/api/chatMutations";
import type { MessageResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { TextArea } from "@/ui/Field";
import { Icon } from "@/ui/icons";
import { BranchSwitch } from "./BranchSwitch";
import styles from "./Message.module.css";
import { userContent } from "./userContent";

type UserMessageProps = {
  message: MessageResponse;
  onShow: (messageId: string) => void;
};

/** What the reader said. Editing it begins another branch; nothing is overwritten. */
export function UserMessage({ message, onShow }: UserMessageProps) {
  const [isEditing, setEditing] = useState(false);
  const { text, images, files } = userContent(message.blocks);
  if (isEditing) return <EditMessage message={message} onClose={() => setEditing(false)} />;
  return (
    <article className={styles.user} aria-label="You">
      <div className={styles.bubble}>
        {images.map(({ key, src, name }) =>
          src ? (
            <img key={key} src={src} alt={name} className={styles.image} />
          ) : (
            <span key={key} className={styles.file}>
              <Icon name="external" small />
              {name}
            </span>
          ),
        )}
        {files.map(({ key, name }) => (
          <span key={key} className={styles.file}>
            <Icon name="text" small />
            {name}
          </span>
        ))}
        {text && <p className={styles.words}>{text}</p>}
      </div>
      <footer className={styles.foot}>
        <BranchSwitch message={message} of="version" onShow={onShow} />
        <Button small kind="quiet" icon="edit" onClick={() => setEditing(true)}>
          Edit
        </Button>
      </footer>
    </article>
  );
}

function EditMessage({ message, onClose }: { message: MessageResponse; onClose: () => void }) {
  const { text: before, attachments } = userContent(message.blocks);
  const [text, setText] = useState(before);
  const edit = useEditMessage(message.chat_id);
  const isEmpty = text.trim() === "";
  const submit = () => {
    if (isEmpty || edit.isPending) return;
    const body = { message: text, ...attachments };
    edit.mutate({ messageId: message.message_id, body }, { onSuccess: onClose });
  };
  return (
    <form
      className={styles.editing}
      aria-label="Edit the message"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <TextArea
        label="Message"
        hiddenLabel
        value={text}
        autoFocus
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
      {edit.error && <ErrorNote error={edit.error} />}
      <div className={styles.foot}>
        <Button small kind="quiet" onClick={onClose}>
          Keep it as it is
        </Button>
        <Button
          small
          type="submit"
          kind="primary"
          disabledReason={isEmpty ? "Say something." : undefined}
        >
          Send as another branch
        </Button>
      </div>
    </form>
  );
}
