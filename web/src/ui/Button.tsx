import { type ComponentProps, type ReactNode, useId } from "react";
import { Link, type LinkProps } from "react-router";
import styles from "@/ui/Button.module.css";
import { classes } from "@/ui/classes";
import { Icon, type IconName } from "@/ui/icons";
import { KeyHint } from "@/ui/KeyHint";

type ButtonKind = "primary" | "plain" | "quiet" | "danger";

interface ButtonLook {
  kind?: ButtonKind | undefined;
  small?: boolean | undefined;
  icon?: IconName | undefined;
  /** The keys that do the same, as they are shown: "Ctrl ↵". */
  keys?: string | undefined;
  children: ReactNode;
}

type ButtonProps = ButtonLook &
  Omit<ComponentProps<"button">, "disabled" | "children"> & {
    /** Disables the button and is shown beside it. */
    disabledReason?: string | undefined;
    /** The id of what says why it cannot be used, where that stands for several buttons at once. */
    disabledBy?: string | undefined;
  };

function Content({ icon, small, keys, children }: Omit<ButtonLook, "kind">) {
  return (
    <>
      {icon && <Icon name={icon} small={small ?? false} />}
      <span data-words>{children}</span>
      {keys && <KeyHint keys={keys} onInk />}
    </>
  );
}

/** A button; a disabled one keeps its focus and says why beside it. */
export function Button(props: ButtonProps) {
  const {
    kind = "plain",
    small,
    icon,
    keys,
    children,
    disabledReason,
    disabledBy,
    ...rest
  } = props;
  const reasonId = useId();
  const button = (
    <button
      type="button"
      {...rest}
      className={classes(styles.button, styles[kind], small && styles.small, rest.className)}
      data-kind={kind}
      {...((disabledReason || disabledBy) && {
        "aria-disabled": true,
        "aria-describedby": disabledBy ?? reasonId,
        onClick: (event) => event.preventDefault(),
      })}
    >
      <Content {...{ icon, small, keys, children }} />
    </button>
  );
  if (!disabledReason) return button;
  return (
    <span className={styles.withReason}>
      <span id={reasonId} className={styles.reason}>
        {disabledReason}
      </span>
      {button}
    </span>
  );
}

/** A link that looks like a button: it leads to another address. */
export function ButtonLink(props: ButtonLook & Omit<LinkProps, "children">) {
  const { kind = "plain", small, icon, keys, children, ...rest } = props;
  return (
    <Link {...rest} className={classes(styles.button, styles[kind], small && styles.small)}>
      <Content {...{ icon, small, keys, children }} />
    </Link>
  );
}
