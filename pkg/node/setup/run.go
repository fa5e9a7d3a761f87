package setup

import "context"

// Func sets a volume up and reports whether it did any work. A Func that uses another volume calls Run for that one and
// counts its work as its own, so that setups compose.
type Func func(ctx context.Context) (didWork bool, err error)

// Run runs the setup if the strategy says so and marks it after success. It reports whether the setup did work, even
// if it failed.
func Run(ctx context.Context, strategy Strategy, setup Func) (didWork bool, err error) {
	run, err := strategy.ShouldRun(ctx)
	if err != nil || !run {
		return false, err
	}
	if didWork, err = setup(ctx); err != nil {
		return didWork, err
	}
	return didWork, strategy.Mark(ctx)
}

// Debt remembers across restarts of the process that ownership has to be applied.
type Debt interface {
	// Owed reports whether ownership was begun, or was about to be, and never finished.
	Owed(ctx context.Context) (bool, error)
	// Owe is called before a setup runs.
	Owe(ctx context.Context) error
	// Settle is called when ownership was applied, or was not necessary.
	Settle(ctx context.Context) error
}

// Ownership is what has to be done to the files of a volume after its setup did work.
type Ownership struct {
	Debt  Debt
	Apply func(ctx context.Context) error
}

// RunOwned is Run that also applies ownership, if and only if the setup did work, or an earlier run was cut short
// before ownership was finished. The strategy's mark comes last.
func RunOwned(ctx context.Context, strategy Strategy, owner Ownership, setup Func) (didWork bool, err error) {
	owed, err := owner.Debt.Owed(ctx)
	if err != nil {
		return false, err
	}
	run, err := strategy.ShouldRun(ctx)
	if err != nil || !run && !owed {
		return false, err
	}
	if run {
		didWork, err = owner.indebted(ctx, setup)
	}
	if err == nil {
		err = owner.pay(ctx, didWork || owed)
	}
	if err != nil || !run {
		return didWork, err
	}
	return didWork, strategy.Mark(ctx)
}

// indebted records the debt and runs the setup, so that a crash at any point leaves the debt.
func (o Ownership) indebted(ctx context.Context, setup Func) (didWork bool, err error) {
	if err := o.Debt.Owe(ctx); err != nil {
		return false, err
	}
	return setup(ctx)
}

// pay applies ownership if it is due, and settles the debt.
func (o Ownership) pay(ctx context.Context, due bool) error {
	if due {
		if err := o.Apply(ctx); err != nil {
			return err
		}
	}
	return o.Debt.Settle(ctx)
}
