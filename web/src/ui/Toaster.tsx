import { Toast as Radix } from "radix-ui";
import { Button } from "@/ui/Button";
import { IconButton } from "@/ui/IconButton";
import { Icon } from "@/ui/icons";
import styles from "@/ui/Toaster.module.css";
import { useToasts } from "@/ui/toasts";

/** Where toasts appear; once a page. */
export function Toaster() {
  const { shown, remove } = useToasts();
  return (
    <Radix.Provider swipeDirection="right" duration={6000} label="Message">
      {shown.map(({ id, text, kind = "plain", action }) => (
        <Radix.Root
          key={id}
          className={styles.toast}
          duration={kind === "error" ? Number.POSITIVE_INFINITY : 6000}
          onOpenChange={(open) => !open && remove(id)}
        >
          <span className={styles[kind]}>
            <Icon name={kind === "error" ? "error" : "info"} />
          </span>
          <Radix.Description className={styles.text}>{text}</Radix.Description>
          {action && (
            <Radix.Action asChild altText={action.label}>
              <Button small onClick={action.onSelect}>
                {action.label}
              </Button>
            </Radix.Action>
          )}
          <Radix.Close asChild>
            <IconButton icon="close" label="Close this message" small />
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport className={styles.place} />
    </Radix.Provider>
  );
}
