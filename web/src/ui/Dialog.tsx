import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/Dialog.module.css";
import { IconButton } from "@/ui/IconButton";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** One sentence under the title. */
  description?: string;
  children: ReactNode;
  /** The buttons; the last one is the primary one. */
  footer?: ReactNode;
  /** At a side of the page, as a sheet. */
  side?: boolean;
  wide?: boolean;
}

/** Asks before anything else goes on. A panel is better where the page can stay in use. */
export function Dialog(props: DialogProps) {
  const { open, onClose, title, description, children, footer, side, wide } = props;
  return (
    <Radix.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={styles.cover} />
        <Radix.Content
          className={classes(styles.dialog, side && styles.side, wide && styles.wide)}
          {...(!description && { "aria-describedby": undefined })}
        >
          <header className={styles.head}>
            <Radix.Title className={styles.title}>{title}</Radix.Title>
          </header>
          {description && (
            <Radix.Description className={styles.description}>{description}</Radix.Description>
          )}
          <div className={styles.body}>{children}</div>
          {footer && <footer className={styles.footer}>{footer}</footer>}
          {/* Last, so that the focus begins in the content. */}
          <Radix.Close asChild>
            <IconButton icon="close" label="Close" keys="Esc" small className={styles.close} />
          </Radix.Close>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
