throw new Error('broken while it was loaded');
