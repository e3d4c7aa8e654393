import { type ClipboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import { useShortcuts } from "@/ui/shortcuts";
import { showToast } from "@/ui/toasts";
import { ACCEPTED, type Attachment, attachmentFields, readAttachment } from "./attachments";
import styles from "./Composer.module.css";

/** A message that is to be sent. */
export type Said = { text: string; attachments: ReturnType<typeof attachmentFields> };

type ComposerProps = {
  placeholder: string;
  /** Sends the message; false where it was not accepted, so that it stays in the field. */
  onSend: (said: Said) => Promise<boolean>;
  /** Stops the answer that is being written. */
  onStop?: (() => void) | undefined;
  /** What the message goes to, under the field. */
  children?: ReactNode;
};

/** The field for the next message. Enter sends, Shift Enter begins a line, Esc stops an answer. */
export function Composer({ placeholder, onSend, onStop, children }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const { attachments, add, remove, clear } = useAttachments();
  useEffect(() => field.current?.focus(), []);
  useShortcuts("Chat", [{ keys: "escape", does: "Stop the answer", run: () => onStop?.() }]);
  const isEmpty = text.trim() === "" && attachments.length === 0;
  const submit = async () => {
    if (isEmpty || isSending || onStop) return;
    setSending(true);
    if (await onSend({ text, attachments: attachmentFields(attachments) })) {
      setText("");
      clear();
    }
    setSending(false);
  };
  return (
    <form
      className={styles.composer}
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div className={styles.prompt}>
        <textarea
          ref={field}
          className={styles.text}
          aria-label="Message"
          placeholder={placeholder}
          rows={1}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onPaste={(event) => void add(pastedFiles(event))}
          onKeyDown={(event) => {
            if (event.key === "Escape") onStop?.();
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            void submit();
          }}
        />
        <AttachmentList attachments={attachments} onRemove={remove} />
        <div className={styles.foot}>
          {children}
          <AttachButton onChoose={(files) => void add(files)} />
          <span className={styles.submit}>
            {onStop ? (
              <Button kind="primary" icon="stop" keys="Esc" onClick={onStop}>
                Stop
              </Button>
            ) : (
              <Button
                type="submit"
                kind="primary"
                keys="↵"
                {...(isSending && { disabledReason: "Sending …" })}
              >
                Send
              </Button>
            )}
          </span>
        </div>
      </div>
    </form>
  );
}

function useAttachments() {
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const add = async (files: readonly File[]) => {
    for (const file of files) {
      try {
        const read = await readAttachment(file);
        setAttachments((before) => [...before, read]);
      } catch (error) {
        showToast({ kind: "error", text: (error as Error).message });
      }
    }
  };
  const remove = (removed: Attachment) =>
    setAttachments((before) => before.filter((each) => each !== removed));
  return { attachments, add, remove, clear: () => setAttachments([]) };
}

type AttachmentListProps = {
  attachments: readonly Attachment[];
  onRemove: (attachment: Attachment) => void;
};

function AttachmentList({ attachments, onRemove }: AttachmentListProps) {
  if (attachments.length === 0) return null;
  return (
    <ul className={styles.attachments} aria-label="Attached">
      {attachments.map((each, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be attached twice
        <li key={index}>
          {each.kind === "image" ? (
            <img src={`data:${each.mime};base64,${each.data}`} alt="" />
          ) : (
            <Icon name="text" small />
          )}
          <span title={each.name}>{each.name}</span>
          <IconButton
            small
            icon="close"
            label={`Remove ${each.name}`}
            onClick={() => onRemove(each)}
          />
        </li>
      ))}
    </ul>
  );
}

function AttachButton({ onChoose }: { onChoose: (files: File[]) => void }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field}
        type="file"
        multiple
        accept={ACCEPTED}
        aria-label="Files to attach"
        hidden
        onChange={(event) => {
          const files = [...(event.target.files ?? [])];
          event.target.value = "";
          onChoose(files);
        }}
      />
      <IconButton small icon="add" label="Attach" onClick={() => field.current?.click()} />
    </>
  );
}

function pastedFiles(event: ClipboardEvent): File[] {
  return [...event.clipboardData.files];
}
